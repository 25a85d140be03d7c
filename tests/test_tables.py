"""Tables of the command line: what is read is what was written, and what cannot be read is named."""

from __future__ import annotations

import numpy as np
import pytest

from manifast.tables import Table, read_labels, read_table, write_table


def file_of(folder, text, name="a.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_csv_with_and_without_header(tmp_path):
    table = read_table(file_of(tmp_path, "1,2\n3,4.5\n"))
    assert table.names is None and table.ids is None and table.X.tolist() == [[1, 2], [3, 4.5]]
    table = read_table(file_of(tmp_path, "\ufeffa, b\n1,2\n\n3,4\n"))
    assert table.names == ["a", "b"] and table.X.tolist() == [[1, 2], [3, 4]]
    table = read_table(file_of(tmp_path, ",a\nx,1\ny,2\n"))  # the index of a data frame
    assert table.ids.tolist() == ["x", "y"] and table.names == ["a"]
    table = read_table(file_of(tmp_path, "ID\tb\n7\t1\n", "a.tsv"))
    assert table.ids.tolist() == [7] and table.id_name == "ID" and table.X.tolist() == [[1]]
    table = read_table(file_of(tmp_path, "a,b,c\n1,2,u\n3,4,v\n"), labels="c", drop=["a"])
    assert table.X.tolist() == [[2], [4]] and table.labels.tolist() == ["u", "v"]
    assert read_table(file_of(tmp_path, "a,b,c\n1,2,u\n"), only=["b", "a"]).X.tolist() == [[2, 1]]


def test_labels_from_everywhere(tmp_path):
    data = file_of(tmp_path, "a,kind\n1,3\n2,\n", "data.csv")
    assert np.array_equal(read_labels("kind", data).labels, [3, np.nan], equal_nan=True)
    rows = file_of(tmp_path, "a,b\n1,3\n2,4\n", "rows.csv")
    for name, text in (("l.csv", "kind\nu\nv\n"), ("m.csv", "u\nv\n")):
        path = file_of(tmp_path, text, name)
        expected = ["u", "v"] if name == "l.csv" else None
        if expected:
            assert read_labels(str(path), rows).labels.tolist() == expected
    np.save(tmp_path / "l.npy", [5, 6])
    assert read_labels(str(tmp_path / "l.npy"), rows).labels.tolist() == [5, 6]
    np.savez(tmp_path / "both.npz", images=np.ones((2, 3, 3)), labels=[1, 2])
    both = read_labels("labels", tmp_path / "both.npz")
    assert both.X.shape == (2, 9) and both.labels.tolist() == [1, 2]
    assert read_labels(str(tmp_path / "both.npz"), rows).labels.tolist() == [1, 2]
    np.save(tmp_path / "short.npy", [5])
    with pytest.raises(ValueError, match="one label per row"):
        read_labels(str(tmp_path / "short.npy"), rows)


@pytest.mark.parametrize("ending", ["csv", "tsv", "parquet"])
def test_round_trip(tmp_path, rng, ending):
    if ending == "parquet":
        pytest.importorskip("pyarrow", reason="reads and writes Parquet")
    X = rng.standard_normal((20, 3)) * 10.0 ** rng.integers(-20, 20, (20, 3))
    ids = np.array([f'a "{i}", b' for i in range(20)])
    write_table(tmp_path / f"a.{ending}", Table(X, ["x", "y y", "z,z"], ids, "key"))
    found = read_table(tmp_path / f"a.{ending}", ids="key")
    assert np.array_equal(found.X, X) and found.names == ["x", "y y", "z,z"] and found.ids.tolist() == ids.tolist()


def test_what_cannot_be_read_is_named(tmp_path):
    cases = [
        ("", "It is empty"),
        ("a,b\n", "a header alone"),
        ("a,b\n1,2\n3\n", "Line 3 has 1"),
        ("a,a\n1,2\n", "a different name for every column"),
        ("a,b\n1,u\n", "column 'b' of .* holds text"),
        ("a,b\n1,2\n3,\n", "has a missing value in row 2, column b"),
        ("a,b\n1,2\n3,inf\n", "has an infinite value in row 2, column b"),
    ]
    for text, words in cases:
        with pytest.raises(ValueError, match=words):
            read_table(file_of(tmp_path, text))
    with pytest.raises(ValueError, match="It has semicolons"):
        read_table(file_of(tmp_path, "a;b\n1;2\n3;4\n"))
    (tmp_path / "latin.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
    with pytest.raises(ValueError, match="must be text in UTF-8"):
        read_table(tmp_path / "latin.csv")
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=rf"{name} must be an {name[1:]} file of numbers or text"):
            read_table(file_of(tmp_path, "hello", name))
    np.save(tmp_path / "objects.npy", np.array([1, "a", None], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="file of numbers or text"):
        read_table(tmp_path / "objects.npy")
    np.save(tmp_path / "none.npy", np.ones((0, 3)))
    with pytest.raises(ValueError, match="at least 1 row"):
        read_table(tmp_path / "none.npy")
    with pytest.raises(ValueError, match="Its first line was taken for a header"):
        read_labels(str(file_of(tmp_path, "u\nv\n", "l.csv")), file_of(tmp_path, "1,2\n3,4\n"))
    with pytest.raises(ValueError, match="no columns of numbers"):
        read_table(file_of(tmp_path, "a\nu\n"), labels="a")
    with pytest.raises(ValueError, match="must end in"):
        read_table(file_of(tmp_path, "1", "a.xls"))
    np.save(tmp_path / "words.npy", np.array([["a"]]))
    with pytest.raises(ValueError, match="must hold rows of numbers"):
        read_table(tmp_path / "words.npy")
    np.savez(tmp_path / "two.npz", a=np.ones((2, 2)), b=np.ones((2, 2)))
    with pytest.raises(ValueError, match="must hold one matrix"):
        read_table(tmp_path / "two.npz")
    with pytest.raises(ValueError, match="output must be a file ending in"):
        write_table(tmp_path / "a.xls", Table(np.ones((1, 1))))


def test_numbers_at_the_ends_of_the_range(tmp_path):
    table = read_table(file_of(tmp_path, f"a,b\n{10**25},1e308\n{2**63},1e308\n"))
    assert table.X.tolist() == [[1e25, 1e308], [2.0**63, 1e308]]  # their sum is infinite, they are not
    np.save(tmp_path / "large.npy", np.full((3, 2), 1e308))
    assert read_table(tmp_path / "large.npy").X.shape == (3, 2)
    rows = np.zeros((2**20, 3), dtype=np.float32)
    rows[-5, 1] = np.nan
    np.save(tmp_path / "rows.npy", rows)
    with pytest.raises(ValueError, match=f"a missing value in row {2**20 - 4}, column 2"):
        read_table(tmp_path / "rows.npy")


@pytest.mark.parametrize("cells", [["007", "42"], [str(10**25), "3"], ["1.50", "2"], ["+1", "-1"], ["", "x"]])
def test_ids_are_passed_on_as_they_stand(tmp_path, cells):
    table = read_table(file_of(tmp_path, "id,größe\n" + "".join(f"{cell},1\n" for cell in cells)))
    assert table.ids.tolist() == cells and table.names == ["größe"]
    write_table(tmp_path / "out.csv", table)
    assert read_table(tmp_path / "out.csv").ids.tolist() == cells


def test_labels_keep_their_leading_zeros(tmp_path):
    data = file_of(tmp_path, "a,kind\n1,01\n2,1\n")
    assert read_labels("kind", data).labels.tolist() == ["01", "1"]
