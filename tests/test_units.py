import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.errors import UnitError, UnknownName
from linkwise.units import DIMENSIONS, format_quantity, parse


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("400 Gbit/s", "bytes_per_s", 50e9),
        ("400 Gbps", "bytes_per_s", 50e9),
        ("3.35 TB/s", "bytes_per_s", 3.35e12),
        ("80 GB", "bytes", 80e9),
        ("80GiB", "bytes", 80 * 2**30),
        ("989 TFLOP/s", "flop_per_s", 989e12),
        ("989 TFLOPS", "flop_per_s", 989e12),
        ("5 us", "s", 5e-6),
        ("5 µs", "s", 5e-6),
        ("2 h", "s", 7200.0),
        ("10.2 kW", "w", 10200.0),
        ("1 kWh", "j", 3.6e6),
        ("0.36 USD/kWh", "usd_per_j", 1e-7),
        ("36 $/h", "usd_per_s", 0.01),
        ("2 USD/Mtoken", "usd_per_token", 2e-6),
        ("30 m", "m", 30.0),
        ("5 years", "s", 5 * 365.25 * 86400.0),
        ("40 h/month", "s_per_s", 40 / 730.5),
        ("73.05 USD/kW/month", "usd_per_j", 0.1 / 3.6e6),
        ("1e3 B", "bytes", 1000.0),
    ],
)
def test_parse_gives_si_when_the_unit_is_known(text, dimension, value):
    assert parse(text, dimension) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("text", "dimension", "says"),
    [
        ("400", "bytes_per_s", "no unit; write a rate in bytes or bits per second as '400 Gbit/s'"),
        ("5 GB", "s", "'GB' is not a unit of a time"),
        ("400 Gb/s", "bytes_per_s", "'b' is read as bit and as byte"),
        ("80 gb", "bytes", "did you mean 'GB'?"),
        ("1K", "bytes", "write 'KiB' as nccl-tests means it, in steps of 1024, or 'kB' for 1000"),
        ("1k", "bytes", "write 'KiB' as nccl-tests means it, in steps of 1024, or 'kB' for 1000"),
        ("1M", "bytes", "write 'MiB' as nccl-tests means it, in steps of 1024, or 'MB' for 1000"),
        ("16 Gi", "bytes", "write 'GiB' as nccl-tests means it, in steps of 1024, or 'GB' for 1000"),
        ("5 us.", "s", "did you mean 'us'?"),
        ("many GB", "bytes", "is not a size in bytes"),
        ("", "s", "is not a time"),
        ("nan s", "s", "is not a time"),
        ("1e999 s", "s", "not a finite number"),
        ("9**9 s", "s", "unknown unit"),
        ("1 s**99999999", "s", "unknown unit"),
        ("1 __import__", "s", "unknown unit"),
        ("1 " + "s" * 10**6, "s", "is not a time"),
    ],
)
def test_parse_refuses_when_the_text_is_no_such_quantity(text, dimension, says):
    with pytest.raises(UnitError) as caught:
        parse(text, dimension)
    assert says in str(caught.value)
    assert len(str(caught.value)) < 300


def test_parse_names_the_nearest_when_the_dimension_is_unknown():
    with pytest.raises(UnknownName, match="bytes_per_s"):
        parse("1 B", "byte_per_s")


@pytest.mark.parametrize(
    ("value", "dimension", "text"),
    [
        (50e9, "bytes_per_s", "50 GB/s"),
        (50e9 * 8, "bits_per_s", "400 Gbit/s"),
        (9.354, "s", "9.35 s"),
        (5e-6, "s", "5 us"),
        (71.2e9, "bytes", "71.2 GB"),
        (999.9e9, "bytes", "1 TB"),
        (-5e9, "bytes", "-5 GB"),
        (0.0, "s", "0 s"),
        (0.01, "usd_per_s", "36 USD/h"),
        (40 / 730.5, "s_per_s", "40 h/month"),
    ],
)
def test_format_has_three_digits_and_a_short_prefix(value, dimension, text):
    assert format_quantity(value, dimension) == text


@given(st.floats(1e-6, 1e20), st.sampled_from(sorted(DIMENSIONS)))
def test_parse_inverts_format_within_three_digits(value, dimension):
    assert parse(format_quantity(value, dimension), dimension) == pytest.approx(value, rel=6e-3)


@pytest.mark.parametrize("dimension", DIMENSIONS.values(), ids=lambda dimension: dimension.name)
def test_example_is_read_when_followed(dimension):
    assert parse(dimension.example, dimension.name) > 0
