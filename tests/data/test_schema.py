"""Features of a stream of tables: what later tables may bring, and the encoding of kept cells."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isbor.data.encoding import learn_table
from isbor.data.schema import Schema
from tests.problems import shop


def read_in_parts(parts):
    schema, cells = Schema.of("M", parts[0], "auto")
    kept = [cells]
    for part in parts[1:]:
        schema, cells = schema.read("M", part)
        kept.append(cells)
    return schema, np.concatenate(kept)


@pytest.mark.parametrize("cut", [1, 40, 118])
def test_it_encodes_as_if_all_rows_had_come_at_once(cut):
    frame, _ = shop(120)
    frame.loc[5:9, "colour"] = None
    frame = frame.sort_values("colour")
    expected, matrix = learn_table("M", frame)
    schema, cells = read_in_parts([frame[:cut], frame[cut : cut + 1], frame[cut + 1 :]])
    for some, numbers in ((schema, cells), schema.compacted(cells)):
        found = some.encoding(numbers, np.ones(120))
        assert found.names == expected.names
        assert found.keys == expected.keys
        assert_allclose(found.fill, expected.fill, rtol=1e-12)
        assert_allclose(some.encoded(found, numbers), matrix, rtol=1e-12)
        assert some.is_covered(found, numbers)


def test_a_new_category_is_not_covered_and_is_unseen_until_then():
    first = pd.DataFrame({"c": ["a", "b", "a"], "x": [1.0, 2.0, 3.0]})
    schema, cells = Schema.of("M", first, "auto")
    encoding = schema.encoding(cells, np.ones(3))
    schema, more = schema.read("M", pd.DataFrame({"c": ["z", "a"], "x": [0.0, np.nan]}))
    assert not schema.is_covered(encoding, more)
    assert_array_equal(schema.encoded(encoding, more)[:, :3], [[0, 0, 1], [1, 0, 0]])
    again = schema.encoding(np.concatenate([cells, more]), np.ones(5))
    assert again.names == ("c=a", "c=b", "c=z", "c unseen", "x", "x missing")


def test_categories_that_no_kept_row_has_are_forgotten():
    schema, cells = Schema.of("M", pd.DataFrame({"c": list("abcd")}), "auto")
    schema, cells = schema.compacted(cells[[3, 1]])
    assert schema.categories == (("b", "d"),)
    assert_array_equal(cells[:, 0], [1.0, 0.0])


def test_contents_do_not_depend_on_which_category_came_first():
    one, cells = read_in_parts([pd.DataFrame({"c": ["a"]}), pd.DataFrame({"c": ["b"]})])
    other, turned = read_in_parts([pd.DataFrame({"c": ["b"]}), pd.DataFrame({"c": ["a"]})])
    assert_array_equal(one.contents(cells), other.contents(turned)[::-1])


def test_ordered_categories_may_come_in_any_batch():
    def column(values, order):
        return pd.DataFrame({"size": pd.Categorical(values, order, ordered=True)})

    order = ["s", "m", "l", "xl"]
    schema, cells = read_in_parts([column(["xl", "s"], order), column(["m"], order), column(["l"], order)])
    assert schema.encoding(cells, np.ones(4)).categories == (tuple(order),)
    # Declared by what occurs: a further one comes after the one that it follows.
    schema, cells = read_in_parts([column(["s", "l"], ["s", "l"]), column(["m"], ["s", "m", "l"])])
    assert schema.encoding(cells, np.ones(3)).categories == (("s", "m", "l"),)
    with pytest.raises(ValueError, match=r"in column 'size' in the order \['l', 's'\]; .* Declare them"):
        schema.read("M", column(["s"], ["l", "s"]))


def test_a_feature_without_values_may_become_anything():
    empty = pd.DataFrame({"c": [None, None], "x": [np.nan, np.nan]}, dtype=object)
    schema, cells = Schema.of("M", empty, "auto")
    assert np.ptp(schema.encoded(schema.encoding(cells, np.ones(2)), cells), axis=0).max() == 0
    schema, more = schema.read("M", pd.DataFrame({"c": ["a", "b"], "x": [1.0, 2.0]}))
    encoding = schema.encoding(np.concatenate([cells, more]), np.ones(4))
    assert encoding.names == ("c=a", "c=b", "c missing", "c unseen", "x", "x missing")


def test_other_features_are_refused():
    schema, _ = Schema.of("M", pd.DataFrame({"c": ["a", "b"], "x": [1.0, 2.0]}), "auto")
    with pytest.raises(ValueError, match="feature names should match"):
        schema.read("M", pd.DataFrame({"c": ["a"], "z": [1.0]}))
    with pytest.raises(ValueError, match="held strings, such as 'a'"):
        schema.read("M", pd.DataFrame({"c": [1.5], "x": [1.0]}))
    with pytest.raises(ValueError, match="in training it held numbers"):
        schema.read("M", pd.DataFrame({"c": ["a"], "x": ["much"]}))
