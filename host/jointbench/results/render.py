"""Templates of this package filled in: pages that refer to nothing outside themselves."""

import jinja2


def render(template: str, content: object) -> str:
    """Return a page of the look that all reports share."""
    loader = jinja2.PackageLoader("jointbench.results")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, loader=loader)
    css, _, _ = loader.get_source(environment, "report.css")
    return environment.get_template(template).render(content=content, css=css)
