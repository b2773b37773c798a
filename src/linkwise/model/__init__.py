"""Transformer arithmetic: the shape of a model, its parameters and its operations.

It knows nothing of GPUs, layouts or time. A model comes from the catalogue, from a Hugging Face
``config.json`` or from columns of a table; counts and FLOPs follow from one list of matrix products.
Read ``architecture`` first (what a model is), then ``products`` (its matrices), ``parameters`` and ``flop``.
``columns`` is what an estimate reads.
"""

from linkwise.model.architecture import AttentionKind, Model, QueryKeyNorm, make_model
from linkwise.model.columns import COLUMN_MEANINGS, model_columns
from linkwise.model.flop import ForwardFlop, forward_flop_per_token, model_flop_per_token
from linkwise.model.parameters import ParameterCounts, mtp_parameters, parameter_counts

__all__ = [
    "COLUMN_MEANINGS",
    "AttentionKind",
    "ForwardFlop",
    "Model",
    "ParameterCounts",
    "QueryKeyNorm",
    "forward_flop_per_token",
    "make_model",
    "model_columns",
    "model_flop_per_token",
    "mtp_parameters",
    "parameter_counts",
]
