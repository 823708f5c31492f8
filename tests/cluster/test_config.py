"""What a configuration folder may hold: every finding by its code, all of them at once, and nothing of hostile files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.cluster.config import InvalidConfig, read_config, resolve_root, storage_root
from omnigraph.errors import InvalidRequest

SCHEMA = "node Port { code: String @key }\n"
GOOD = "version: 1\nmetadata: { name: dockside }\nstate: { backend: cluster, lock: true }\ngraphs:\n  atlas: { schema: atlas.pg }\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "config"
    (place / "schemas").mkdir(parents=True)
    (place / "cluster.yaml").write_text(GOOD)
    (place / "atlas.pg").write_text(SCHEMA)
    (place / "schemas" / "tides.pg").write_text(SCHEMA)
    return place


def findings(folder: Path, text: str | bytes) -> list[tuple[str, str]]:
    (folder / "cluster.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidConfig) as refused:
        read_config(folder)
    assert refused.value.to_dict()["findings"] == [each.to_dict() for each in refused.value.findings]
    assert refused.value.effects == "none"
    return [(each.code, each.address) for each in refused.value.findings]


def graphs(entry: str) -> str:
    return f"version: 1\ngraphs:\n  {entry}\n"


def test_a_good_folder_says_what_is_declared_and_where_it_goes(folder: Path) -> None:
    config = read_config(folder)
    assert (config.name, config.storage) == ("dockside", str(folder.resolve()))
    assert [(g.id, g.schema_path, g.schema) for g in config.graphs] == [("atlas", "atlas.pg", SCHEMA)]


def test_graphs_come_by_id_and_may_share_a_schema(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(
        "version: 1\ngraphs:\n  tides: { schema: schemas/tides.pg }\n  Atlas: { schema: schemas/tides.pg }\n"
    )
    assert [g.id for g in read_config(folder).graphs] == ["Atlas", "tides"]


@pytest.mark.parametrize("text", ["version: 1\n", "version: 1\ngraphs:\n"])
def test_a_cluster_may_declare_no_graphs(folder: Path, text: str) -> None:
    (folder / "cluster.yaml").write_text(text)
    assert read_config(folder).graphs == ()


@pytest.mark.parametrize(
    ("given", "storage"),
    [
        ("data", "{folder}/data"),
        ("../data", "{parent}/data"),
        ("/srv/quay", "/srv/quay"),
        ("file:///srv/quay", "file:///srv/quay"),
        ("s3://harbour/quay", "s3://harbour/quay"),
        ("${HOME}", "{folder}/${HOME}"),
    ],
)
def test_storage_is_taken_from_the_folder_and_expands_nothing(folder: Path, given: str, storage: str) -> None:
    (folder / "cluster.yaml").write_text(f"version: 1\nstorage: {given}\n")
    expected = storage.replace("{folder}", str(folder.resolve())).replace("{parent}", str(folder.parent.resolve()))
    assert os.path.normpath(read_config(folder).storage) == os.path.normpath(expected)


@pytest.mark.parametrize(
    ("text", "code", "address"),
    [
        ("", "invalid_type", "cluster.yaml"),
        ("- 1\n", "invalid_type", "cluster.yaml"),
        ("graphs: {}\n", "unsupported_cluster_config_version", "version"),
        ("version: 2\n", "unsupported_cluster_config_version", "version"),
        ("version: true\n", "unsupported_cluster_config_version", "version"),
        ("version: 1.0\n", "unsupported_cluster_config_version", "version"),
        ('version: "1"\n', "unsupported_cluster_config_version", "version"),
        ("version: 1\ncolour: red\n", "unknown_key", "cluster.yaml: colour"),
        ("version: 1\n1: red\n", "unknown_key", "cluster.yaml: 1"),
        ("version: 1\npolicies: {}\n", "not_available", "cluster.yaml: policies"),
        ("version: 1\nproviders: {}\n", "not_available", "cluster.yaml: providers"),
        ("version: 1\nenv_file: .env\n", "not_available", "cluster.yaml: env_file"),
        ("version: 1\nmetadata: 1\n", "invalid_type", "metadata"),
        ("version: 1\nmetadata: { name: '' }\n", "invalid_value", "metadata.name"),
        (f"version: 1\nmetadata: {{ name: {'x' * 129} }}\n", "invalid_value", "metadata.name"),
        ("version: 1\nmetadata: { owner: me }\n", "unknown_key", "metadata: owner"),
        ("version: 1\nstate: { lock: false }\n", "state_lock_required", "state.lock"),
        ("version: 1\nstate: { backend: dynamo }\n", "invalid_value", "state.backend"),
        ("version: 1\nstate: { lease: 3 }\n", "unknown_key", "state: lease"),
        ("version: 1\nstorage: 3\n", "invalid_type", "storage"),
        ("version: 1\nstorage: ''\n", "invalid_type", "storage"),
        ("version: 1\nstorage:\n", "invalid_type", "storage"),
        ("version: 1\nstorage: az://quay/x\n", "invalid_storage_root", "storage"),
        ("version: 1\nstorage: s3://key:word@quay/x\n", "invalid_storage_root", "storage"),
        ("version: 1\ngraphs: [atlas]\n", "invalid_type", "graphs"),
        (graphs("1st: { schema: atlas.pg }"), "invalid_graph_id", "graphs.1st"),
        (graphs("a_b: { schema: atlas.pg }"), "invalid_graph_id", "graphs.a_b"),
        (graphs("metrics: { schema: atlas.pg }"), "invalid_graph_id", "graphs.metrics"),
        (graphs("no: { schema: atlas.pg }"), "invalid_graph_id", "graphs.False"),
        (graphs(f"a{'b' * 64}: {{ schema: atlas.pg }}"), "invalid_graph_id", f"graphs.a{'b' * 64}"),
        (graphs("atlas: { schema: atlas.pg }\n  Atlas: { schema: atlas.pg }"), "duplicate_graph_id", "graphs.Atlas"),
        (graphs("atlas: atlas.pg"), "invalid_type", "graphs.atlas"),
        (graphs("atlas: {}"), "invalid_type", "graphs.atlas.schema"),
        (graphs("atlas: { schema: [atlas.pg] }"), "invalid_type", "graphs.atlas.schema"),
        (graphs("atlas: { schema: atlas.pg, quieries: x }"), "unknown_key", "graphs.atlas: quieries"),
        (graphs("atlas: { schema: atlas.pg, queries: q.gq }"), "not_available", "graphs.atlas: queries"),
        (graphs("atlas: { schema: atlas.pg, protect: true }"), "not_available", "graphs.atlas: protect"),
        (graphs("atlas: { schema: nothing.pg }"), "config_file_missing", "graphs.atlas.schema"),
        (graphs("atlas: { schema: atlas.pg/x.pg }"), "config_file_missing", "graphs.atlas.schema"),
        (graphs("atlas: { schema: '' }"), "invalid_value", "graphs.atlas.schema"),
        (graphs("atlas: { schema: . }"), "invalid_value", "graphs.atlas.schema"),
        (graphs('atlas: { schema: "a\\0b" }'), "invalid_value", "graphs.atlas.schema"),
        (graphs("atlas: { schema: schemas }"), "config_file_unreadable", "graphs.atlas.schema"),
        (graphs("atlas: { schema: ../atlas.pg }"), "config_path_escape", "graphs.atlas.schema"),
        (graphs("atlas: { schema: schemas/../atlas.pg }"), "config_path_escape", "graphs.atlas.schema"),
        (graphs("atlas: { schema: /etc/hostname }"), "config_path_escape", "graphs.atlas.schema"),
    ],
)
def test_each_fault_is_found_and_named(folder: Path, text: str, code: str, address: str) -> None:
    assert (code, address) in findings(folder, text)


@pytest.mark.parametrize(
    "text",
    [
        "version: [1\n",
        "version: 1\nversion: 1\n",
        "version: 1\ngraphs: &all {}\n",
        "version: 1\nmetadata: &m { name: x }\nstate: *m\n",
        "version: 1\ngraphs: { <<: { a: b } }\n",
        "version: 1\n? [a]\n: b\n",
        "version: 1\n---\nversion: 1\n",
        "version: !!python/object/apply:os.system [ls]\n",
        "version: 2001-99-99\n",
        f"version: {'9' * 5_000}\n",
        "version: " + "[" * 5_000,
        "version: 1\nmetadata: { name: \x07 }\n",
    ],
    ids=lambda text: text[:40],
)
def test_yaml_that_is_no_plain_document_is_refused_without_repeating_it(folder: Path, text: str) -> None:
    (folder / "cluster.yaml").write_text(text)
    with pytest.raises(InvalidConfig) as refused:
        read_config(folder)
    assert [each.code for each in refused.value.findings] == ["invalid_yaml"]
    assert "os.system" not in str(refused.value)


def test_all_findings_come_at_once(folder: Path) -> None:
    text = "version: 3\ncolour: red\ngraphs:\n  a: { schema: nothing.pg }\n  b: { schema: /etc/x }\n"
    assert [code for code, _ in findings(folder, text)] == [
        "unknown_key",
        "unsupported_cluster_config_version",
        "config_file_missing",
        "config_path_escape",
    ]


def test_text_that_is_not_utf8_is_refused(folder: Path) -> None:
    assert findings(folder, b"version: 1 # \xff\n") == [("invalid_encoding", "cluster.yaml")]
    (folder / "atlas.pg").write_bytes(SCHEMA.encode("utf-16"))
    assert findings(folder, GOOD) == [("invalid_encoding", "graphs.atlas.schema")]


def test_a_schema_that_does_not_compile_is_found_by_its_own_code(folder: Path) -> None:
    (folder / "atlas.pg").write_text("node Port { code: Strin @key }")
    [(code, address)] = findings(folder, GOOD)
    assert code.startswith("S")
    assert address == "graphs.atlas.schema"


def test_a_folder_without_cluster_yaml_or_no_folder_at_all_is_found(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nothing"):
        with pytest.raises(InvalidConfig) as refused:
            read_config(place)
        assert [each.code for each in refused.value.findings] == ["config_file_missing"]


# --- hostile folders


def test_a_link_is_never_followed_at_any_component(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.pg").write_text("node Hunter2 { code: String @key }")
    (folder / "linked.pg").symlink_to(outside / "secret.pg")
    (folder / "linked").symlink_to(outside)
    (folder / "dangling.pg").symlink_to(tmp_path / "nothing")
    for path in ("linked.pg", "linked/secret.pg", "dangling.pg"):
        assert findings(folder, graphs(f"atlas: {{ schema: {path} }}")) == [
            ("config_path_symlink", "graphs.atlas.schema")
        ]


def test_a_linked_cluster_yaml_is_refused_and_nothing_of_it_repeated(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.yaml").write_text("hunter2: [")
    (folder / "cluster.yaml").unlink()
    (folder / "cluster.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    with pytest.raises(InvalidConfig) as refused:
        read_config(folder)
    assert [each.code for each in refused.value.findings] == ["config_path_symlink"]
    assert "hunter2" not in str(refused.value.to_dict())


def test_an_absolute_path_is_not_echoed(folder: Path) -> None:
    (folder / "cluster.yaml").write_text(graphs("atlas: { schema: /home/hunter2/x.pg }"))
    with pytest.raises(InvalidConfig) as refused:
        read_config(folder)
    assert "hunter2" not in str(refused.value.to_dict())


def test_a_pipe_does_not_hang_the_reader(folder: Path) -> None:
    os.mkfifo(folder / "pipe.pg")
    assert findings(folder, graphs("atlas: { schema: pipe.pg }")) == [("config_file_unreadable", "graphs.atlas.schema")]


def test_files_are_bounded(folder: Path) -> None:
    assert findings(folder, GOOD + "#" * (1 << 20)) == [("config_file_too_large", "cluster.yaml")]
    with open(folder / "atlas.pg", "ab") as file:
        file.truncate((16 << 20) + 1)
    assert findings(folder, GOOD) == [("config_file_too_large", "graphs.atlas.schema")]


def test_control_characters_of_names_never_reach_a_terminal(folder: Path) -> None:
    (folder / "cluster.yaml").write_text('version: 1\ngraphs: { "a\\e[31m\\u202e": { schema: atlas.pg } }\n')
    with pytest.raises(InvalidConfig) as refused:
        read_config(folder)
    assert [each.address for each in refused.value.findings] == ["graphs.a\\u001b[31m\\u202e"]
    assert str(refused.value).isprintable()


# --- what a server boots from


def test_a_root_is_resolved_without_reading_schemas(folder: Path) -> None:
    (folder / "atlas.pg").write_text("no schema at all")
    root = resolve_root(str(folder))
    assert (root.storage, root.declared) == (str(folder.resolve()), ("atlas",))


def test_a_folder_without_cluster_yaml_is_the_root_itself(tmp_path: Path) -> None:
    assert resolve_root(str(tmp_path)).storage == str(tmp_path)
    assert resolve_root("s3://harbour/quay").declared is None
    assert storage_root(str(tmp_path / "later")) == str(tmp_path / "later")


def test_a_root_that_is_not_there_or_no_address_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        resolve_root(str(tmp_path / "nothing"))
    assert refused.value.code == "cluster_root_unresolved"
    with pytest.raises(InvalidRequest) as refused:
        resolve_root("ftp://harbour/quay")
    assert refused.value.code == "invalid_storage_root"


def test_a_damaged_cluster_yaml_is_no_root(folder: Path) -> None:
    (folder / "cluster.yaml").write_text("version: 1\ngraphs: {")
    with pytest.raises(InvalidConfig):
        resolve_root(str(folder))
