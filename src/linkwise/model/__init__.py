"""Transformer arithmetic: the shape of a model, its parameters and its operations.

It knows nothing of GPUs, layouts or time. A model comes from the catalogue, from a Hugging Face
``config.json`` or from columns of a table; counts and FLOPs follow from one list of matrix products.
Read ``architecture`` first (what a model is), then ``products`` (its matrices), ``parameters`` and ``flop``.
``columns`` is what an estimate reads.
"""

from linkwise.model.architecture import AttentionKind, Model, QueryKeyNorm, make_model, with_positions
from linkwise.model.columns import COLUMN_MEANINGS, model_columns
from linkwise.model.config_json import model_from_config_json, read_config_json
from linkwise.model.flop import ForwardFlop, forward_flop_per_token, model_flop_per_token
from linkwise.model.load import load_model
from linkwise.model.parameters import ParameterCounts, mtp_parameters, parameter_counts
from linkwise.model.table_row import model_from_columns, model_from_entry

__all__ = [
    "COLUMN_MEANINGS",
    "AttentionKind",
    "ForwardFlop",
    "Model",
    "ParameterCounts",
    "QueryKeyNorm",
    "forward_flop_per_token",
    "load_model",
    "make_model",
    "model_columns",
    "model_flop_per_token",
    "model_from_columns",
    "model_from_config_json",
    "model_from_entry",
    "mtp_parameters",
    "parameter_counts",
    "read_config_json",
    "with_positions",
]
