"""`linkwise schema`: the JSON Schema of a document."""

from __future__ import annotations

import json

import click

__all__ = ["schema"]


@click.command()
@click.argument("document", type=click.Choice(["cluster", "job", "rollout", "prices", "calibration"]))
def schema(document: str) -> None:
    """Print the JSON Schema of DOCUMENT, for editors and other programs."""
    from linkwise.documents import json_schema

    if document == "cluster":
        from linkwise.cluster.document import HEADER, ClusterDocument

        published = json_schema(ClusterDocument, HEADER)
    elif document == "prices":
        from linkwise.cluster.prices_document import HEADER, PricesDocument

        published = json_schema(PricesDocument, HEADER)
    elif document == "rollout":
        from linkwise.rollout.document.document import HEADER, RolloutDocument

        published = json_schema(RolloutDocument, HEADER)
    elif document == "calibration":
        from linkwise.cluster.calibration_document import HEADER, CalibrationDocument

        published = json_schema(CalibrationDocument, HEADER)
    else:
        from linkwise.job.document import HEADER, JobDocument

        published = json_schema(JobDocument, HEADER)
    click.echo(json.dumps(published, indent=2))
