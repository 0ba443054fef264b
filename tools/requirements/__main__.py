"""Write docs/evidence/requirements.md anew: `python -m tools.requirements`."""

from jointbench.testing.requirements import load
from tools.requirements.page import FOLDER, PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page(load(FOLDER)), encoding="utf-8")
    print(f"{PAGE} is written")
