"""Open every page of the built site in a browser of a phone's width: ``make docs-check``.

Sphinx does not notice an equation that MathJax cannot read, nor a line that is cut off because it is wider
than the page. A browser does. Tables, code and equations may be wider: they scroll within themselves.
"""

import html
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

WIDTH = 390
AT_ONCE = 8
SCRIPT = """<body><script>
const pages = %s, width = %d, found = [];
const scrolls = (element, view) => ["auto", "scroll"].includes(view.getComputedStyle(element).overflowX);
const within = (element, view) => {
  for (let above = element.parentElement; above && !above.matches(".bd-article"); above = above.parentElement)
    if (scrolls(above, view)) return true;
  return false;
};
const isCutOff = (element, view) => {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.right > width + 1 && !within(element, view);
};
const open = (page) => new Promise((done) => {
  const frame = document.createElement("iframe");
  frame.style.width = width + "px";
  frame.onload = async () => {
    const view = frame.contentWindow, inside = frame.contentDocument;
    if (view.MathJax?.startup) await view.MathJax.startup.promise;
    const wrong = [...inside.querySelectorAll("mjx-merror")].map((e) => "equation: " + e.textContent);
    const missing = inside.querySelectorAll(".math").length - inside.querySelectorAll("mjx-container").length;
    if (missing) wrong.push(missing + " equation(s) are not drawn");
    const parts = inside.querySelectorAll(".bd-article *:not(.headerlink)");
    const wide = [...parts].filter((e) => isCutOff(e, view)).slice(0, 1);
    wrong.push(...wide.map((e) => "wider than the page: " + e.textContent.slice(0, 60)));
    found.push([page, wrong]);
    frame.remove();
    done();
  };
  frame.src = page;
  document.body.append(frame);
});
(async () => {
  for (const page of pages) await open(page);
  document.body.innerText = JSON.stringify(found);
})();
</script></body>"""


def faults(pages):
    """Return what is wrong on some pages: pairs of page and list of sentences."""
    with tempfile.NamedTemporaryFile("w", suffix=".html") as file:
        file.write(SCRIPT % (json.dumps([page.as_uri() for page in pages]), WIDTH))
        file.flush()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
        flags += ["--virtual-time-budget=60000", "--dump-dom", f"file://{file.name}"]
        shown = subprocess.run(["chromium", *flags], capture_output=True, text=True, check=True).stdout
    content = re.search(r"<body>(\[.*\])</body>", shown, re.DOTALL)
    if content:
        return json.loads(html.unescape(content[1]))
    if len(pages) == 1:
        return [(pages[0].as_uri(), ["the browser did not open the page in time"])]
    return [found for page in pages for found in faults([page])]


def main(site):
    """Check the pages of a site, and return the number of those with faults."""
    pages = [
        page for page in sorted(site.rglob("*.html")) if not page.relative_to(site).parts[0].startswith("_")
    ]
    found = [fault for i in range(0, len(pages), AT_ONCE) for fault in faults(pages[i : i + AT_ONCE])]
    wrong = [(page, sentences) for page, sentences in found if sentences]
    for page, sentences in wrong:
        print(page, *sentences, sep="\n  ")
    print(f"{len(pages)} pages, {len(wrong)} with faults")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()) > 0)
