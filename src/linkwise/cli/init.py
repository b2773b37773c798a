"""`linkwise init`: a commented template of a document."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from linkwise.errors import InputError

__all__ = ["TEMPLATES", "init"]

TEMPLATES: Mapping[str, str] = {
    "cluster": "cluster/template.yaml",
    "job": "job/template.yaml",
    "rollout": "rollout/document/template.yaml",
    "prices": "cluster/prices_template.yaml",
}
"""Template of each document, in the room that reads it."""


@click.command()
@click.argument("document", type=click.Choice(list(TEMPLATES)))
@click.argument("path", required=False)
def init(document: str, path: str | None) -> None:
    """Write a commented template of DOCUMENT to PATH.

    PATH is cluster.yaml, job.yaml, rollout.yaml or prices.yaml if left out, and - is standard output. A file
    that exists is left alone.
    """
    template = _template(document)
    if path == "-":
        click.echo(template, nl=False)
        return
    target = Path(path or f"{document}.yaml")
    if not target.parent.is_dir():
        raise InputError(f"{target}: there is no directory {target.parent}")
    try:
        file = target.open("x", encoding="utf-8")
    except FileExistsError:
        raise InputError(f"{target} exists and is left alone; give another path") from None
    try:
        with file:
            file.write(template)
    except BaseException:  # a full disk or Ctrl-C leaves no half of a template
        target.unlink(missing_ok=True)
        raise
    click.echo(f"wrote {target}", err=True)


def _template(document: str) -> str:
    from importlib import resources

    return (resources.files("linkwise") / TEMPLATES[document]).read_text(encoding="utf-8")
