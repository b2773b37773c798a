"""What a fit may know of the publisher that it leaves out."""

from linkwise.estimate.constants import constant_values, values_without


def test_a_constant_read_off_one_publisher_is_unknown_to_the_fit_without_it():
    shipped = constant_values()
    without = values_without("SC21")
    assert {name for name, value in shipped.items() if without[name] != value} == {"zero3_2021_traffic"}
    assert without["zero3_2021_traffic"] == 1.0
    assert values_without("another") == shipped
