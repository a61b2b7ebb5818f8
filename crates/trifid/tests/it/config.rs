//! `trifid config show`, `--version`, and how a wrong configuration is refused.

use crate::harness::Trifid;

#[test]
fn the_version_is_the_packages() {
    let said = Trifid::new().run(&["--version"]);
    assert_eq!(said.out, format!("trifid {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn layers_win_in_order_and_are_named() {
    let trifid = Trifid::new()
        .file("trifid.toml", "data_dir = 'from-file'\n[log]\nlevel = 'debug'\nformat = 'json'\n")
        .variable("TRIFID_LOG_FORMAT", "pretty")
        .variable("TRIFID_LOG_LEVEL", "warn");
    let said = trifid.run(&["config", "show", "--set", "log.level=error"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    for line in [
        "data_dir = \"from-file\"  # trifid.toml:1",
        "log.format = \"pretty\"  # TRIFID_LOG_FORMAT",
        "log.level = \"error\"  # --set log.level",
        "doors = [\"all\"]  # default",
    ] {
        assert!(said.out.lines().any(|shown| shown == line), "{line} in\n{}", said.out);
    }
}

#[test]
fn what_is_shown_can_be_kept_as_the_file() {
    let trifid = Trifid::new();
    let first = trifid.run(&["config", "show", "--explain", "--set", "data_dir=x"]);
    std::fs::write(trifid.folder.path().join("kept.toml"), &first.out).unwrap();
    let second = trifid.run(&["config", "show", "--config", "kept.toml"]);
    assert_eq!(second.code, Some(0), "{}", second.err);
    assert!(second.out.contains("data_dir = \"x\"  # kept.toml:"), "{}", second.out);
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_name() {
    let table = [
        (Trifid::new().file("trifid.toml", "dors = []"), "trifid.toml:1: unknown key `dors`", "`doors`"),
        (Trifid::new().variable("TRIFID_DOOR", "x"), "unknown variable `TRIFID_DOOR`", "`TRIFID_DOORS`"),
    ];
    for (trifid, place, nearest) in table {
        let said = trifid.run(&["config", "show"]);
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
        assert!(said.err.starts_with(&format!("error: {place}; the nearest known")), "{}", said.err);
        assert!(said.err.contains(nearest), "{}", said.err);
    }
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let said = Trifid::new().run(&["config", "show", "--config", "absent.toml"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("cannot read the configuration file absent.toml"), "{}", said.err);
}

#[test]
fn a_command_that_does_not_exist_is_a_mistake_of_usage() {
    assert_eq!(Trifid::new().run(&["frobnicate"]).code, Some(2));
}
