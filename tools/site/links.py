"""Leads links out of docs/ to the repository, where their targets are."""

import re

REPOSITORY = "https://github.com/millwright-dev/millwright/tree/main/"


def on_page_markdown(markdown, page, **_):
    up = "../" * (page.file.src_path.count("/") + 1)
    return re.sub(r"\]\(" + re.escape(up) + r"(?!\.\./)", "](" + REPOSITORY, markdown)
