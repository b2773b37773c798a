"""`linkwise init`: a commented template of a document."""

from __future__ import annotations

from pathlib import Path

import click

from linkwise.errors import InputError

__all__ = ["init"]


@click.command()
@click.argument("document", type=click.Choice(["cluster", "job"]))
@click.argument("path", required=False)
def init(document: str, path: str | None) -> None:
    """Write a commented template of DOCUMENT to PATH.

    PATH is cluster.yaml or job.yaml if left out, and - is standard output. A file that exists is left alone.
    """
    template = _template(document)
    if path == "-":
        click.echo(template, nl=False)
        return
    target = Path(path or f"{document}.yaml")
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(template)
    except FileExistsError:
        raise InputError(f"{target} exists and is left alone; give another path") from None
    click.echo(f"wrote {target}", err=True)


def _template(document: str) -> str:
    from importlib import resources

    return (resources.files("linkwise") / document / "template.yaml").read_text(encoding="utf-8")
