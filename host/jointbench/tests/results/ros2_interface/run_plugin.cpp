// Load a controller plugin and drive it as a controller manager would, by commands on standard input:
// number NAME X | text NAME WORD | numbers NAME X... | configure | chained 0 or 1 | state X... | activate |
// reference X... | update | deactivate. Each answer is a line.
#include <dlfcn.h>

#include <iostream>
#include <sstream>

#include "ros2_control_interface.hpp"

using controller_interface::CallbackReturn;

static std::vector<double> numbers(std::istream & line)
{
  std::vector<double> values;
  std::string word;
  while (line >> word) {
    values.push_back(std::stod(word));
  }
  return values;
}

int main(int, char ** arguments)
{
  void * library = dlopen(arguments[1], RTLD_NOW);
  if (!library) {
    std::cerr << dlerror() << "\n";
    return 1;
  }
  const auto make = reinterpret_cast<controller_interface::ChainableControllerInterface * (*)()>(dlsym(library, "make_plugin"));
  const auto types = reinterpret_cast<const char * (*)()>(dlsym(library, "plugin_types"));
  const std::unique_ptr<controller_interface::ChainableControllerInterface> controller(make());
  std::cout << types() << "\n";
  std::map<std::string, rclcpp::Parameter::Value> parameters;
  std::vector<std::shared_ptr<hardware_interface::CommandInterface>> references;
  std::vector<hardware_interface::CommandInterface> commands;
  std::vector<hardware_interface::StateInterface> states;
  std::vector<double> state_values, command_values;
  std::string text, verb, name;
  std::cout.precision(17);
  while (std::getline(std::cin, text)) {
    std::istringstream line(text);
    line >> verb;
    if (verb == "number") {
      double value;
      line >> name >> value;
      parameters[name] = value;
    } else if (verb == "text") {
      std::string value;
      line >> name >> value;
      parameters[name] = value;
    } else if (verb == "numbers") {
      line >> name;
      parameters[name] = numbers(line);
    } else if (verb == "configure") {
      bool good = controller->init("feedforward_controller", parameters) == CallbackReturn::SUCCESS;
      good = good && controller->on_configure({}) == CallbackReturn::SUCCESS;
      std::cout << (good ? "configured" : "refused") << "\n";
      if (!good) {
        continue;
      }
      references = controller->export_reference_interfaces();
      const auto command_names = controller->command_interface_configuration().names;
      const auto state_names = controller->state_interface_configuration().names;
      command_values.assign(command_names.size(), 0.0);
      state_values.assign(state_names.size(), 0.0);
      std::vector<hardware_interface::LoanedCommandInterface> loaned_commands;
      std::vector<hardware_interface::LoanedStateInterface> loaned_states;
      commands.reserve(command_names.size());
      states.reserve(state_names.size());
      for (std::size_t k = 0; k < command_names.size(); k++) {
        commands.emplace_back("hardware", command_names[k], &command_values[k]);
        loaned_commands.emplace_back(commands.back());
        std::cout << command_names[k] << " ";
      }
      std::cout << "\n";
      for (std::size_t k = 0; k < state_names.size(); k++) {
        states.emplace_back("hardware", state_names[k], &state_values[k]);
        loaned_states.emplace_back(states.back());
        std::cout << state_names[k] << " ";
      }
      std::cout << "\n";
      for (const auto & each : references) {
        std::cout << each->get_name() << " ";
      }
      std::cout << "\n";
      controller->assign_interfaces(std::move(loaned_commands), std::move(loaned_states));
    } else if (verb == "chained") {
      int chained;
      line >> chained;
      std::cout << controller->set_chained_mode(chained != 0) << "\n";
    } else if (verb == "state") {
      const auto given = numbers(line);
      std::copy(given.begin(), given.end(), state_values.begin());
    } else if (verb == "activate") {
      std::cout << (controller->on_activate({}) == CallbackReturn::SUCCESS ? "active" : "refused") << "\n";
    } else if (verb == "reference") {
      const auto given = numbers(line);
      for (std::size_t k = 0; k < given.size(); k++) {
        (void)references[k]->set_value(given[k]);
      }
    } else {
      if (verb == "update") {
        const auto result = controller->update(rclcpp::Time(), rclcpp::Duration());
        std::cout << (result == controller_interface::return_type::OK ? "ok" : "error");
      } else {
        std::cout << (controller->on_deactivate({}) == CallbackReturn::SUCCESS ? "inactive" : "refused");
      }
      for (const double each : command_values) {
        std::cout << " " << each;
      }
      std::cout << "\n";
    }
  }
  return 0;
}
