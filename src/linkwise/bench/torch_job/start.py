"""The script torchrun starts: measures what the plan asks for.

Called as ``start.py KIND PLAN``: the module of this folder that measures, and a file with its plan as JSON.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

_KINDS = ("collectives", "pairs", "training")


def main(kind: str, plan_path: str) -> None:
    """Run one plan.

    Parameters
    ----------
    kind
        One of ``collectives``, ``pairs`` and ``training``.
    plan_path
        File with the plan.
    """
    if kind not in _KINDS:
        raise SystemExit(f"unknown job {kind!r}")
    # A script finds modules beside it first; last, under the name of their folder, they shadow none.
    sys.path.append(str(Path(__file__).parents[1]))
    sys.path.remove(str(Path(__file__).parent))
    session_module = importlib.import_module("torch_job.session")
    plan = json.loads(Path(plan_path).read_text(encoding="utf-8"))
    try:
        session = session_module.join(plan)
        importlib.import_module(f"torch_job.{kind}").measure(session, plan)
        session.leave()
        # Modules of torch hold groups for good, and so threads of gloo: one that wants Python's lock while
        # the interpreter ends aborts the rank. All is said by now, so that the interpreter need not end.
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 (the reason of any rank must get out, whatever it is)
        session_module.say("failed", rank=int(os.environ.get("RANK", "0")), error=session_module.told(error))
        raise SystemExit(1) from None


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
