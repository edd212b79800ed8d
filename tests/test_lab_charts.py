"""Charts of comparisons, laws, maps and run times: every record, one colour a curve, words that are read."""

import itertools
import json
import math
import re

import numpy as np
import pytest

import sfumato as sf
from sfumato.charts import comparison, heatmap, histogram, save, stacked, strips, svg, theme
from sfumato.charts.rulers import even_ruler, log_ruler, plain, spread

DARK = "#1a2027"
HOSTILE = [
    "</script><script>alert(1)</script>",
    "a\x1b[31m\tb",
    "x' onload='y\" + datum.y + \"",
    "back\\slash \\u0041 \\",
    "<b>&amp;</b>",
    "é" * 500,
    "",
]


def point(curve="Laplace", kind="exact", x=1.0, y=1.0, **more):
    return {"curve": curve, "kind": kind, "x": x, "y": y, **more}


def line(curve, kind="exact", factor=1.0, **more):
    return [point(curve, kind, x, factor / x, **more) for x in (0.1, 1.0, 10.0)]


def bar(start, value=1.0, **more):
    return {"start": start, "end": start + 1, "value": value, **more}


def layers(chart, data=None):
    """All layers of a chart, of all its panels, each with its records, which layers may share."""
    spec = chart if isinstance(chart, dict) else chart.to_dict()
    data = spec.get("data", data)
    found = [{**spec, "data": data}] if "mark" in spec else []
    for name in ("layer", "concat", "vconcat"):
        found += [layer for part in spec.get(name, ()) for layer in layers(part, data)]
    return found


def of(chart, *kinds):
    return [layer for layer in layers(chart) if layer["mark"]["type"] in kinds]


def values(some):
    return [row for layer in some for row in layer["data"]["values"]]


def colour(layer):
    return layer["mark"].get("fill") or layer["mark"]["color"]


def texts(chart):
    return [row.get("text") for row in values(of(chart, "text"))]


def colours_used(node):
    """Every colour that is written anywhere in a specification."""
    if isinstance(node, dict):
        return set().union(*map(colours_used, node.values())) if node else set()
    if isinstance(node, list):
        return set().union(*map(colours_used, node)) if node else set()
    return {node} if isinstance(node, str) and re.fullmatch(r"#[0-9a-fA-F]{6}", node) else set()


def everything():
    """The specification of one chart of each kind that uses most of what it can."""
    rows = [row for i in range(7) for kind in ("exact", "simulated") for row in line(f"c{i}", kind, 1 + i)]
    rows = [{**row, "low": row["y"] * 0.9, "high": row["y"] * 1.1} for row in rows]
    rows += [row for kind in theme.KINDS for row in line("other", kind, 3)]
    marks = [{"x": 1, "text": "here"}, {"y": 1, "text": "there"}, {"x": 2, "y": 2, "text": "both"}]
    cells = [{"x": x, "y": y, "value": x * y} for x in range(9) for y in range(9)]
    named = [{"x": x, "y": y, "name": f"n{(x + y) % 7}"} for x in range(9) for y in range(3)]
    narrow = [{"x": x, "y": y, "name": f"a long name {(x + y) % 3}"} for x in range(30) for y in range(3)]
    charts = {
        "comparison": comparison(rows, title="t", subtitle=["s"], log_x=True, log_y=True, marks=marks),
        "histogram": histogram(
            [bar(i, i, series=name) for i in range(9) for name in "ab"], curves=rows, title="t", marks=marks
        ),
        "numbers": heatmap(cells),
        "names": heatmap(named),
        "key": heatmap(narrow),
        "strips": strips([{"label": name, "value": v} for name in "abc" for v in (1, 2, 5)], title="t"),
    }
    return {name: chart.to_dict() for name, chart in charts.items()}


@pytest.fixture(scope="module")
def drawn():
    return everything()


# --- comparisons -----------------------------------------------------------------------------------


def test_a_comparison_shows_every_record_in_its_panel():
    rows = [
        row for panel in ("n = 100", "n = 1000") for row in line("a", panel=panel) + line("b", panel=panel)
    ]
    spec = comparison(rows, log_x=True, log_y=True).to_dict()
    for panel, name in zip(spec["concat"], ("n = 100", "n = 1000"), strict=True):
        shown = [
            row
            for layer in layers(panel)
            if layer["mark"]["type"] == "line"
            for row in layer["data"]["values"]
        ]
        assert [(r["curve"], r["x"], r["y"]) for r in shown] == [
            (r["curve"], r["x"], r["y"]) for r in rows if r["panel"] == name
        ]
        assert name in texts(panel)


def test_exact_and_simulated_values_of_a_curve_share_their_colour_and_their_name():
    rows = line("a") + line("a", "simulated", low=0.1, high=20.0) + line("b") + line("b", "simulated")
    chart = comparison(rows, log_x=True, log_y=True)
    for name in "ab":
        mine = [
            layer
            for layer in of(chart, "line", "point")
            if {row["curve"] for row in layer["data"]["values"]} == {name}
        ]
        assert {layer["mark"]["type"] for layer in mine} == {"line", "point"}
        assert len({colour(layer) for layer in mine}) == 1
        assert texts(chart).count(name) == 1
    assert len({colour(layer) for layer in of(chart, "point")}) == 2
    assert len({layer["mark"]["shape"] for layer in of(chart, "point")}) == 2


def test_error_bars_reach_from_low_to_high_and_stay_on_a_logarithmic_axis():
    rows = [
        point(kind="simulated", x=x, y=2.0, low=low, high=3.0) for x, low in ((1, 1.0), (2, -1.0), (3, None))
    ]
    bars = [layer for layer in of(comparison(rows), "rule") if "low" in layer["encoding"]["y"]["field"]]
    assert [(row["low"], row["high"]) for row in values(bars)] == [(1.0, 3.0), (-1.0, 3.0)]
    chart = comparison(rows, log_y=True)
    bars = [layer for layer in of(chart, "rule") if "low" in layer["encoding"]["y"]["field"]]
    low = bars[0]["encoding"]["y"]["scale"]["domain"][0]
    assert [0 < row["low"] <= max(low, 1.0) for row in values(bars)] == [True, True]


def test_points_are_joined_by_a_thin_line_where_no_exact_line_leads_the_eye():
    alone, led = line("a", "simulated"), line("b", "simulated") + line("b")
    lines = of(comparison(alone + led + [point("a", "exact", 0.1)]), "line")
    seen = [(layer["data"]["values"][0]["curve"], layer["mark"]["strokeWidth"] < 2) for layer in lines]
    assert sorted(seen) == [("a", False), ("a", True), ("b", False)]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, None])
def test_what_is_not_finite_is_left_out(bad):
    shown = values(of(comparison([point(x=1), point(x=2, y=bad), point(x=bad), point(x=3)]), "line"))
    assert [row["x"] for row in shown] == [1, 3]
    shown = values(of(histogram([bar(0), bar(1, bad), bar(2)]), "rect"))
    assert [row["start"] for row in shown] == [0, 2]
    shown = values(of(heatmap([{"x": x, "y": 1, "value": v} for x, v in ((1, 2), (2, bad))]), "rect"))
    assert len(shown) == 1
    shown = values(of(strips([{"label": "a", "value": v} for v in (1.0, bad, 3.0)], log=False), "point"))
    assert [row["value"] for row in shown] == [1, 3]


def test_what_is_not_positive_has_no_place_on_a_logarithmic_axis():
    rows = [point(x=x, y=y) for x, y in ((0, 1), (1, 0), (-1, 1), (1, -1), (1, 1), (2, 2))]
    assert len(values(of(comparison(rows, log_x=True, log_y=True), "line"))) == 2
    assert len(values(of(comparison(rows), "line"))) == 6
    times = [{"label": "a", "value": v} for v in (0, -1, 2)]
    assert len(values(of(strips(times), "point"))) == 1
    json.dumps(comparison(rows, log_x=True, log_y=True).to_dict(), allow_nan=False)


def test_no_two_curves_look_the_same():
    kinds = ("exact", "bound", "bound", "published", "published", "exact", "lower bound")
    rows = [row for i, kind in enumerate(kinds) for row in line(f"c{i}", kind, 1 + i)]
    looks = [
        (layer["mark"]["color"], tuple(layer["mark"]["strokeDash"])) for layer in of(comparison(rows), "line")
    ]
    assert len(set(looks)) == len({one for one, _ in looks}) == len({dash for _, dash in looks}) == 7
    many = [row for i in range(14) for row in line(f"c{i}", "simulated", 1 + i)]
    points = of(comparison(many, height=400), "point")
    assert len({(colour(layer), layer["mark"]["shape"]) for layer in points}) == 14


def test_a_reference_is_black_and_colours_do_not_depend_on_the_panel():
    rows = line("a", panel="1") + line("b", panel="1") + line("b", panel="2") + line("none", "reference")
    chart = comparison(rows, log_x=True, log_y=True)
    lines = of(chart, "line")
    seen = {}
    for layer in lines:
        seen.setdefault(layer["data"]["values"][0]["curve"], []).append(colour(layer))
    assert seen["none"] == [theme.BLACK] * 2, "what has no panel stands in all"
    assert len(set(seen["b"])) == 1
    assert len(seen["a"]) == 1


def test_names_beside_curves_do_not_overlap_and_stay_in_the_picture():
    rng = np.random.default_rng(7)
    for _ in range(200):
        many = int(rng.integers(1, 8))
        heights = rng.uniform(12, 40, many)
        whole = float(heights.sum() + rng.uniform(0, 200))
        wanted = rng.uniform(0, whole, many) if rng.random() < 0.5 else np.full(many, whole * rng.random())
        found = spread(wanted.tolist(), heights.tolist(), whole)
        order = sorted(range(many), key=lambda i: found[i])
        for above, below in itertools.pairwise(order):
            assert found[below] - found[above] >= (heights[above] + heights[below]) / 2 - 1e-9
            assert wanted[above] <= wanted[below], "their order is kept"
        assert min(f - h / 2 for f, h in zip(found, heights, strict=True)) >= -1e-9
        assert max(f + h / 2 for f, h in zip(found, heights, strict=True)) <= whole + 1e-9


def test_names_that_have_room_stay_where_they_are_and_others_move_as_little_as_can_be():
    assert spread([10.0, 50.0, 90.0], [20.0] * 3, 100.0) == [10.0, 50.0, 90.0]
    wanted, heights = [40.0, 42.0, 50.0, 80.0], [10.0, 12.0, 10.0, 10.0]
    found = spread(wanted, heights, 100.0)
    cost = sum((f - w) ** 2 for f, w in zip(found, wanted, strict=True))
    gaps = [11.0, 11.0, 10.0]
    rng = np.random.default_rng(3)
    for _ in range(2000):
        other = np.array(found) + rng.normal(0, 2, 4)
        if all(np.diff(other) >= gaps):
            assert sum((other - wanted) ** 2) >= cost - 1e-9


@pytest.mark.parametrize(
    ("mark", "kinds"),
    [({"x": 1, "y": 2}, {"point", "text"}), ({"x": 1}, {"rule", "text"}), ({"y": 2}, {"rule", "text"})],
)
def test_marks_are_points_and_lines_with_their_words(mark, kinds):
    rows = line("a")
    before = [layer["mark"]["type"] for layer in layers(comparison(rows).to_dict())]
    chart = comparison(rows, marks=[{**mark, "text": "so it is"}])
    assert {layer["mark"]["type"] for layer in layers(chart.to_dict())} == {*before, *kinds}
    assert "so it is" in texts(chart)
    with pytest.raises(sf.InvalidParameter, match="marks must have x, y or both"):
        comparison(rows, marks=[{"text": "nowhere"}])


def test_words_of_a_mark_keep_away_from_curves():
    flat = [point(x=x, y=9.0) for x in range(11)] + [point(x=x, y=0.0) for x in range(11)]
    near = [point("b", x=x, y=5.2 if x < 6 else 1.0) for x in range(11)]
    chart = comparison(flat + near, marks=[{"y": 5.0, "text": "limit"}])
    places = [layer["encoding"]["x"]["value"] for layer in of(chart, "text") if "limit" in str(layer["data"])]
    assert min(places) > 100, "the left end is taken by a curve"


def test_ticks_are_clean_numbers_and_find_room():
    assert log_ruler(0.05, 5, 400).ticks == (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
    assert log_ruler(1e-9, 1, 250).ticks == (1e-8, 1e-6, 1e-4, 1e-2, 1.0)
    assert log_ruler(2.1, 2.4, 300).ticks == (2.1, 2.15, 2.2, 2.25, 2.3, 2.35, 2.4)
    assert even_ruler(0, 1, 200).ticks == (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
    for low, high in itertools.product((1e-12, 3e-5, 0.2, 7), (1.1, 3, 40, 1e9)):
        ruler = log_ruler(low, low * high, 200)
        assert 2 <= len(ruler.ticks) <= 9
        assert all(low * 0.999 <= tick <= low * high * 1.001 for tick in ruler.ticks)
        assert not any("e" in plain(tick) for tick in ruler.ticks)
        assert len({plain(tick) for tick in ruler.ticks}) == len(ruler.ticks)
        assert ruler.at(ruler.share(low * high**0.3)) == pytest.approx(low * high**0.3)


# --- histograms, maps, strips ----------------------------------------------------------------------


def test_bars_reach_from_edge_to_edge_and_from_zero():
    rows = [bar(i, i - 1.0) for i in range(4)]
    curves = line("law")
    chart = histogram(rows, curves=curves, along="mean", unit="density")
    (boxes,) = of(chart, "rect")
    assert [(r["start"], r["end"], r["value"], r["floor"]) for r in values([boxes])] == [
        (i, i + 1, i - 1.0, 0) for i in range(4)
    ]
    encoding = boxes["encoding"]
    assert (encoding["x"]["field"], encoding["x2"]["field"]) == ("start", "end")
    assert (encoding["y"]["field"], encoding["y2"]["field"]) == ("floor", "value")
    low, high = encoding["y"]["scale"]["domain"]
    assert low < -1
    assert high > 10
    assert [row["y"] for row in values(of(chart, "line"))] == [row["y"] for row in curves]
    assert colour(of(chart, "line")[0]) != boxes["mark"]["color"]
    assert texts(chart) == ["law"], "a key names the curve"


def test_a_curve_without_a_panel_lies_over_the_bars_of_every_panel():
    rows = [bar(i, i, panel=panel) for i in range(3) for panel in "ab"]
    chart = histogram(rows, curves=line("law") + line("own", panel="b"))
    assert [row["curve"] for row in values(of(chart, "line"))] == ["law"] * 6 + ["own"] * 3
    assert len(of(chart, "rect")) == 2


def test_cells_hold_their_numbers_and_equal_numbers_look_equal():
    cells = [{"x": x, "y": y, "value": x * y} for x in (1, 10, 2) for y in (3, 30)]
    chart = heatmap(cells, along="n", unit="m", text=".1f")
    (boxes,) = of(chart, "rect")
    shown = values([boxes])
    assert [row["value"] for row in shown] == [cell["value"] for cell in cells]
    assert texts(chart) == [f"{cell['value']:.1f}" for cell in cells]
    fills = {row["value"]: row["fill"] for row in shown}
    assert all(fills[row["value"]] == row["fill"] for row in shown)
    assert fills[3] == theme.LEVELS[0]
    assert fills[300] == theme.LEVELS[-1]
    assert boxes["encoding"]["x"]["sort"] == ["1", "2", "10"]
    assert boxes["encoding"]["y"]["sort"] == ["30", "3"], "numbers grow upwards"


def test_names_stand_in_their_cells_or_by_their_first_letters_with_a_key():
    wide = heatmap([{"x": x, "y": "a", "name": name} for x, name in enumerate(("single", "recursive"))])
    assert texts(wide) == ["single", "recursive"]
    cells = [{"x": x, "y": "a", "name": ("recursive", "rough")[x % 2]} for x in range(20)]
    narrow = heatmap(cells)
    assert texts(narrow)[:2] == ["re recursive", "ro rough"]
    assert set(texts(narrow)[2:]) <= {"re", "ro"}
    assert len({row["fill"] for row in values(of(narrow, "rect"))}) == 2


def test_a_strip_shows_every_value_and_its_median():
    rows = [
        {"label": label, "value": v} for label, times in (("b", (1, 5, 3)), ("a", (10, 40))) for v in times
    ]
    chart = strips(rows, unit="seconds")
    assert [row["value"] for row in values(of(chart, "point"))] == [1, 5, 3, 10, 40]
    assert [(row["label"], row["value"]) for row in values(of(chart, "tick"))] == [("b", 3), ("a", 25)]
    assert set(texts(chart)) == {"median 3", "25"}
    assert strips(rows).to_dict() == strips(rows).to_dict(), "where a dot lies is no chance"


# --- refusals and hostile names --------------------------------------------------------------------


@pytest.mark.parametrize("draw", [comparison, histogram, heatmap, strips])
def test_no_records_and_too_many_are_refused(draw):
    record = {**point(), **bar(0), "label": "a"}
    with pytest.raises(sf.InvalidParameter, match="rows must be 1 to 5,000 records"):
        draw([])
    with pytest.raises(sf.InvalidParameter, match="got 5,001"):
        draw([record] * (theme.MOST_MARKS + 1))
    with pytest.raises(sf.InvalidParameter, match=r"rows must have '\w+' in every record"):
        draw([{"nothing": 1}])


def test_what_no_picture_can_show_is_refused():
    with pytest.raises(sf.InvalidParameter, match="kind must be one of 'exact'"):
        comparison(line("a", "guess"))
    with pytest.raises(sf.InvalidParameter, match="at most 14 curves, got 15"):
        comparison([point(f"c{i}") for i in range(15)])
    with pytest.raises(sf.InvalidParameter, match="at most 3 series, got 4"):
        histogram([bar(0, series=name) for name in "abcd"])
    with pytest.raises(sf.InvalidParameter, match="at most 7 names"):
        heatmap([{"x": i, "y": 1, "name": str(i)} for i in range(8)])
    with pytest.raises(sf.InvalidParameter, match="all have a value, or all a name"):
        heatmap([{"x": 1, "y": 1, "name": "a"}, {"x": 2, "y": 1, "value": 2}])
    with pytest.raises(sf.InvalidParameter, match="panels must be names"):
        comparison(line("a", panel="b"), panels=2)
    with pytest.raises(sf.InvalidParameter, match="columns must be in"):
        comparison(line("a", panel="b"), columns=0)


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_words(name):
    rows = line(name, panel=name) + line("b", "simulated", panel="b")
    charts = [
        comparison(rows, title=name, subtitle=[name], along=name, unit=name, marks=[{"x": 1, "text": name}]),
        histogram([bar(0, series=name, panel=name)], curves=rows, title=name),
        heatmap([{"x": name, "y": name, "name": name}, {"x": "b", "y": "b", "name": "b"}], title=name),
        strips([{"label": name, "value": 1}], title=name),
    ]
    for chart in (chart.to_dict() for chart in charts):
        shown = [text for text in texts(chart) if text is not None]
        assert all(text.replace("\n", "").isprintable() for text in shown)
        assert max(len(part) for text in shown for part in text.split("\n")) <= 66
        expressions = re.findall(r'"labelExpr": "((?:[^"\\]|\\.)*)"', json.dumps(chart))
        assert not any("alert" in text or "onload" in text or "slash" in text for text in expressions)


def test_hostile_names_are_escaped_in_the_element_of_a_page():
    rows = [row for name in HOSTILE[:5] for row in line(name)]
    chart = comparison(rows, title=HOSTILE[0], log_x=True, log_y=True)
    element = svg(chart, alt=HOSTILE[0], prefix="a")
    assert "<script" not in element
    assert "<b>" not in element
    assert "alert(1)" in element


# --- colours and sizes -----------------------------------------------------------------------------


def luminance(shade):
    parts = [int(shade[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_colour_has_a_counterpart_on_a_dark_page(drawn):
    used = set().union(*(colours_used(chart) for chart in drawn.values()))
    assert len(used) > 20
    assert used <= set(theme.LIGHT_TO_DARK)
    assert '"white"' not in json.dumps([{**chart, "background": ""} for chart in drawn.values()])


def test_marks_and_words_stand_out_from_a_white_and_from_a_dark_page():
    marks = [*theme.CURVES, theme.AXIS, *(one for one, _ in theme.KINDS.values())]
    written = [theme.INK, *(theme.WORDS.get(one, one) for one in theme.CURVES)]
    for light, least in [(one, 3.0) for one in marks] + [(one, 4.5) for one in written]:
        assert contrast(light, theme.PAGE) >= least, light
        assert contrast(theme.LIGHT_TO_DARK[light], DARK) >= least, light
    assert theme.LIGHT_TO_DARK[theme.PAGE] == DARK
    assert contrast(theme.VERMILION, theme.PAGE) < 4.5, "which is why words have darker colours"


def test_words_can_be_read_in_every_cell(drawn):
    for name in ("numbers", "names", "key"):
        for row in values(of(drawn[name], "rect")):
            if "ink" in row:
                assert contrast(row["fill"], row["ink"]) >= 4.5
    assert all(theme.LIGHT_TO_DARK[one] == one for one in (*theme.LEVELS, *theme.NAMED, theme.ON_PALE))


def test_letters_are_never_small(drawn):
    for chart in drawn.values():
        sizes = re.findall(r'"[a-zA-Z]*[fF]ontSize": (\d+)', json.dumps(chart))
        assert sizes
        assert min(map(int, sizes)) >= 12


def test_panels_fit_the_column_of_a_page(tmp_path):
    names = ("RecExp", "IndExp", "histogram")
    rows = [
        row
        for panel in ("n = 100", "n = 1,000", "n = 10,000", "n = 100,000")
        for i, name in enumerate(names)
        for row in line(name, factor=1 + i, panel=panel)
    ]
    chart = comparison(rows, title="A title that is rather long for a picture " * 3, log_x=True, log_y=True)
    assert len(chart.to_dict()["concat"]) == 4
    picture = save(chart, tmp_path / "a.png").read_bytes()
    assert 2 * 600 < int.from_bytes(picture[16:20], "big") <= 2 * 700


def test_stacked_pictures_keep_the_size_of_their_letters():
    one, two = comparison(line("a")), histogram([bar(0)])
    assert stacked([one, two]).to_dict()["config"]["axis"]["labelFontSize"] == 13


def test_a_frame_will_do():
    polars = pytest.importorskip("polars")
    rows = line("a") + line("a", "simulated", low=0.01, high=20.0)
    for row in rows:
        row.setdefault("low", None)
        row.setdefault("high", None)
    assert comparison(polars.DataFrame(rows)).to_dict() == comparison(rows).to_dict()


def test_maps_that_list_their_names_agree_on_colours():
    def fills(*names):
        cells = [{"x": i, "y": 1, "name": name} for i, name in enumerate(names)]
        rows = heatmap(cells, names=("none", "joint")).to_dict()["layer"][0]["data"]["values"]
        return {row["name"]: row["fill"] for row in rows}

    one, other = fills("joint", "tree"), fills("none", "joint")
    assert one["joint"] == other["joint"]
    assert len(set(one.values())) == len(set(other.values())) == 2
