// What the exported controller takes of ros2_control's public interface, declared anew and filled with next to nothing:
// the names, signatures and order of calls of three releases, so that the plugin is compiled and run without ROS 2.
// RELEASE: 1 as Humble, 2 as Jazzy, 3 as later releases.
#ifndef ROS2_CONTROL_INTERFACE_HPP_
#define ROS2_CONTROL_INTERFACE_HPP_

#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace rclcpp
{
class Time {};
class Duration {};
class Logger {};

class Parameter
{
public:
  using Value = std::variant<double, std::string, std::vector<double>>;
  explicit Parameter(Value value) : value_(std::move(value)) {}
  double as_double() const { return std::get<double>(value_); }
  std::string as_string() const { return std::get<std::string>(value_); }
  std::vector<double> as_double_array() const { return std::get<std::vector<double>>(value_); }

private:
  Value value_;
};
}  // namespace rclcpp

#define RCLCPP_ERROR(logger, ...) ((void)(logger), std::fprintf(stderr, __VA_ARGS__), std::fprintf(stderr, "\n"))

namespace rclcpp_lifecycle
{
class State {};

namespace node_interfaces
{
class LifecycleNodeInterface
{
public:
  enum class CallbackReturn : std::uint8_t { SUCCESS = 97, FAILURE = 98, ERROR = 99 };
  virtual ~LifecycleNodeInterface() = default;
  virtual CallbackReturn on_configure(const State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_activate(const State &) { return CallbackReturn::SUCCESS; }
  virtual CallbackReturn on_deactivate(const State &) { return CallbackReturn::SUCCESS; }
};
}  // namespace node_interfaces

class LifecycleNode
{
public:
  explicit LifecycleNode(std::string name) : name_(std::move(name)) {}
  const char * get_name() const { return name_.c_str(); }
  rclcpp::Logger get_logger() const { return {}; }
  bool has_parameter(const std::string & name) const { return parameters.count(name) > 0; }
  rclcpp::Parameter get_parameter(const std::string & name) const { return rclcpp::Parameter(parameters.at(name)); }
  std::map<std::string, rclcpp::Parameter::Value> parameters;

private:
  std::string name_;
};
}  // namespace rclcpp_lifecycle

namespace hardware_interface
{
class Handle
{
public:
  Handle(const std::string & prefix, const std::string & interface, double * value)
  : name_(prefix + "/" + interface), value_(value)
  {
  }
  const std::string & get_name() const { return name_; }
#if RELEASE == 1
  double get_value() const { return *value_; }
#else
  template <typename T = double>
  [[nodiscard]] std::optional<T> get_optional() const { return *value_; }
#endif
#if RELEASE == 1
  void set_value(double value) { *value_ = value; }
#else
  template <typename T>
  [[nodiscard]] bool set_value(const T & value)
  {
    *value_ = value;
    return true;
  }
#endif

private:
  std::string name_;
  double * value_;
};

class StateInterface : public Handle
{
public:
  using Handle::Handle;
};

class CommandInterface : public Handle
{
public:
  using SharedPtr = std::shared_ptr<CommandInterface>;
  using Handle::Handle;
  CommandInterface(const CommandInterface &) = delete;
  CommandInterface(CommandInterface &&) = default;
};

class LoanedStateInterface
{
public:
  explicit LoanedStateInterface(StateInterface & own) : own_(own) {}
#if RELEASE == 1
  double get_value() const { return own_.get_value(); }
#else
  template <typename T = double>
  [[nodiscard]] std::optional<T> get_optional(unsigned int = 10) const { return own_.get_optional<T>(); }
#endif

private:
  StateInterface & own_;
};

class LoanedCommandInterface
{
public:
  explicit LoanedCommandInterface(CommandInterface & own) : own_(own) {}
  LoanedCommandInterface(const LoanedCommandInterface &) = delete;
  LoanedCommandInterface(LoanedCommandInterface &&) = default;
#if RELEASE == 1
  void set_value(double value) { own_.set_value(value); }
#else
  template <typename T>
  [[nodiscard]] bool set_value(const T & value, unsigned int = 10) { return own_.set_value(value); }
#endif

private:
  CommandInterface & own_;
};
}  // namespace hardware_interface

namespace controller_interface
{
using CallbackReturn = rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface::CallbackReturn;

enum class return_type : std::uint8_t { OK = 0, ERROR = 1 };

enum class interface_configuration_type : std::uint8_t { ALL = 0, INDIVIDUAL = 1, NONE = 2 };

struct InterfaceConfiguration
{
  interface_configuration_type type;
  std::vector<std::string> names = {};
};

class ControllerInterfaceBase : public rclcpp_lifecycle::node_interfaces::LifecycleNodeInterface
{
public:
  virtual InterfaceConfiguration command_interface_configuration() const = 0;
  virtual InterfaceConfiguration state_interface_configuration() const = 0;
  virtual CallbackReturn on_init() = 0;
  virtual return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;

  // The real one takes more, and hands parameters over as node options.
  CallbackReturn init(const std::string & name, std::map<std::string, rclcpp::Parameter::Value> parameters)
  {
    node_ = std::make_shared<rclcpp_lifecycle::LifecycleNode>(name);
    node_->parameters = std::move(parameters);
    return on_init();
  }
  void assign_interfaces(
    std::vector<hardware_interface::LoanedCommandInterface> && command_interfaces,
    std::vector<hardware_interface::LoanedStateInterface> && state_interfaces)
  {
    command_interfaces_ = std::move(command_interfaces);
    state_interfaces_ = std::move(state_interfaces);
  }
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> get_node() { return node_; }

protected:
  template <typename ParameterT>
  ParameterT auto_declare(const std::string & name, const ParameterT & default_value)
  {
    if (!node_->has_parameter(name)) {
      node_->parameters[name] = default_value;
    }
    return std::get<ParameterT>(node_->parameters[name]);
  }

  std::vector<hardware_interface::LoanedCommandInterface> command_interfaces_;
  std::vector<hardware_interface::LoanedStateInterface> state_interfaces_;

private:
  std::shared_ptr<rclcpp_lifecycle::LifecycleNode> node_;
};

class ChainableControllerInterface : public ControllerInterfaceBase
{
public:
  return_type update(const rclcpp::Time & time, const rclcpp::Duration & period) final
  {
    if (!in_chained_mode_) {
#if RELEASE == 1
      const return_type result = update_reference_from_subscribers();
#else
      const return_type result = update_reference_from_subscribers(time, period);
#endif
      if (result != return_type::OK) {
        return result;
      }
    }
    return update_and_write_commands(time, period);
  }
  bool set_chained_mode(bool chained_mode)
  {
    in_chained_mode_ = chained_mode && on_set_chained_mode(chained_mode);
    return in_chained_mode_ == chained_mode;
  }
  std::vector<hardware_interface::CommandInterface::SharedPtr> export_reference_interfaces()
  {
#if RELEASE == 3
    return on_export_reference_interfaces_list();
#else
    std::vector<hardware_interface::CommandInterface::SharedPtr> interfaces;
    for (auto & interface : on_export_reference_interfaces()) {
      interfaces.push_back(std::make_shared<hardware_interface::CommandInterface>(std::move(interface)));
    }
    return interfaces;
#endif
  }

protected:
#if RELEASE == 3
  virtual std::vector<hardware_interface::CommandInterface::SharedPtr> on_export_reference_interfaces_list() = 0;
#else
  virtual std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() = 0;
#endif
  virtual bool on_set_chained_mode(bool) { return true; }
#if RELEASE == 1
  virtual return_type update_reference_from_subscribers() = 0;
#else
  virtual return_type update_reference_from_subscribers(const rclcpp::Time &, const rclcpp::Duration &) = 0;
#endif
  virtual return_type update_and_write_commands(const rclcpp::Time & time, const rclcpp::Duration & period) = 0;

  std::vector<double> reference_interfaces_;

private:
  bool in_chained_mode_ = false;
};
}  // namespace controller_interface

#define PLUGINLIB_EXPORT_CLASS(derived, base) \
  extern "C" const char * plugin_types() { return #derived " " #base; } \
  extern "C" base * make_plugin() { return new derived(); }

#endif  // ROS2_CONTROL_INTERFACE_HPP_
