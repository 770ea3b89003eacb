"""A box of latitudes and longitudes, with its limits, and across the date line."""

import pytest

from query_api.lookup.bounding_box import BoundingBox, InvalidBoxError

BERLIN = BoundingBox(52.3, 13.0, 52.7, 13.8)
FIJI = BoundingBox(-20, 177, -15, -178)


@pytest.mark.parametrize(
    ("box", "point", "is_inside"),
    [
        (BERLIN, (52.5, 13.4), True),
        (BERLIN, (52.3, 13.8), True),
        (BERLIN, (52.29999, 13.4), False),
        (BERLIN, (52.5, 13.80001), False),
        (BERLIN, None, False),
        (FIJI, (-18.0, 179.9), True),
        (FIJI, (-18.0, -179.9), True),
        (FIJI, (-18.0, 177.0), True),
        (FIJI, (-18.0, -178.0), True),
        (FIJI, (-18.0, 0.0), False),
        (FIJI, (-18.0, -177.9), False),
    ],
)
def test_a_box_contains_points_up_to_its_limits(
    box: BoundingBox, point: tuple[float, float] | None, is_inside: bool
) -> None:
    assert box.contains(point) is is_inside


@pytest.mark.parametrize("text", ["52.3,13,52.7,13.8", "-20,177,-15,-178", "-90,-180,90,180", "0,0,0,0"])
def test_a_box_is_read_back_from_its_text(text: str) -> None:
    box = BoundingBox.parse(text)

    assert BoundingBox.parse(box.text) == box
    assert box.text == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "four numbers"),
        ("1,2,3", "four numbers"),
        ("1,2,3,4,5", "four numbers"),
        ("1,2,3,x", "four numbers"),
        ("1,2,3,nan", "four numbers"),
        ("1,2,3,1e1", "four numbers"),
        ("1, 2,3,4", "four numbers"),
        ("-90.1,0,0,0", "latitudes"),
        ("0,0,91,0", "latitudes"),
        ("0,-181,0,0", "longitudes"),
        ("2,0,1,0", "minLat 2 is greater than maxLat 1"),
    ],
)
def test_another_text_is_no_box(text: str, reason: str) -> None:
    with pytest.raises(InvalidBoxError, match=reason):
        BoundingBox.parse(text)
