use std::io::Write as _;
use std::net::SocketAddr;

use super::*;
use crate::units::{Size, Span};

crate::section! {
    /// Keys without a section.
    struct Root {
        /// Where data lies.
        data_dir: PathBuf = "data",
        /// The doors that open.
        doors: Vec<String> = "context",
    }
}

crate::section! {
    /// A section of every kind.
    struct Http in "http" {
        /// Where to listen,
        /// in two lines.
        listen: SocketAddr = "127.0.0.1:9090",
        /// A size.
        body_limit: Size = "16MiB",
        /// A duration.
        head_deadline: Span = "10s",
        /// A count.
        connections: u32 = "1000" in "connections",
        /// A path that need not be.
        certificate: Option<PathBuf> = "",
        /// Whether.
        cors: bool = "false",
        /// Not to be shown.
        password: Secret = "hunter2",
    }
}

fn schema() -> Schema {
    Schema::new(&[Root::KEYS, Http::KEYS])
}

/// Resolves a file's text, variables and `--set` arguments.
fn resolve(file: &str, environment: &[(&str, &str)], set: &[&str]) -> Result<Config, String> {
    let mut written = tempfile::NamedTempFile::new().unwrap();
    written.write_all(file.as_bytes()).unwrap();
    let environment =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let flags = set.iter().map(|argument| Flag::set(argument).unwrap()).collect();
    let layers = Layers { file: Some(written.path().to_owned()), environment, flags };
    let named = written.path().display().to_string();
    schema().resolve(&layers).map_err(|error| error.to_string().replace(&named, "FILE"))
}

fn refusal(file: &str, environment: &[(&str, &str)], set: &[&str]) -> String {
    resolve(file, environment, set).err().unwrap_or_else(|| "accepted".to_owned())
}

#[test]
fn defaults_fill_what_nobody_sets() {
    let config = resolve("", &[], &[]).unwrap();
    let http: Http = config.section("http").unwrap();
    assert_eq!(http.listen, "127.0.0.1:9090".parse().unwrap());
    assert_eq!((http.body_limit, http.head_deadline.0.as_secs()), (Size(16 << 20), 10));
    assert_eq!((http.connections, http.certificate, http.cors), (1000, None, false));
    let root: Root = config.section("").unwrap();
    assert_eq!((root.data_dir, root.doors), (PathBuf::from("data"), vec!["context".to_owned()]));
    assert!(config.settings().iter().all(|setting| setting.origin == Origin::Default));
    assert_eq!(Http::default().password.reveal(), "hunter2");
}

#[test]
fn later_layers_win_and_each_value_keeps_its_origin() {
    let file = "data_dir = '/a'\ndoors = ['context', 'stream']\n[http]\nconnections = 1\ncors = true\nbody_limit = 512\n";
    let environment =
        [("TRIFID_HTTP_CONNECTIONS", "2"), ("TRIFID_HTTP_HEAD_DEADLINE", "2s"), ("PATH", "/bin")];
    let config = resolve(file, &environment, &["http.connections=3", "http.certificate=/c.pem"]).unwrap();
    let http: Http = config.section("http").unwrap();
    assert_eq!((http.connections, http.cors, http.body_limit), (3, true, Size(512)));
    assert_eq!(http.certificate, Some(PathBuf::from("/c.pem")));
    let origin = |name| config.setting(name).unwrap().origin.to_string();
    assert_eq!(origin("http.connections"), "--set http.connections");
    assert_eq!(origin("http.head_deadline"), "TRIFID_HTTP_HEAD_DEADLINE");
    assert!(origin("http.cors").ends_with(":5"), "{}", origin("http.cors"));
    assert!(origin("data_dir").ends_with(":1"));
    assert_eq!(origin("http.listen"), "default");
}

#[test]
fn dotted_keys_of_a_file_are_the_same_as_tables() {
    let config = resolve("http.connections = 9\nhttp.cors = true", &[], &[]).unwrap();
    assert_eq!(config.section::<Http>("http").unwrap().connections, 9);
}

#[test]
fn an_unknown_key_names_its_place_and_the_nearest_known_one() {
    let nearest = "unknown key `http.lisen`; the nearest known key is `http.listen`";
    assert_eq!(refusal("\n[http]\nlisen = 'x'", &[], &[]), format!("FILE:3: {nearest}"));
    assert_eq!(refusal("", &[], &["http.lisen=x"]), format!("--set http.lisen: {nearest}"));
    assert_eq!(
        refusal("", &[("TRIFID_HTTP_LISTEM", "x")], &[]),
        "unknown variable `TRIFID_HTTP_LISTEM`; the nearest known one is `TRIFID_HTTP_LISTEN`"
    );
    assert_eq!(refusal("[archive]\n", &[], &[]), "accepted", "an empty table sets nothing");
}

#[test]
fn a_value_of_the_wrong_kind_is_refused_where_it_was_written() {
    let table = [
        (
            "http.connections = 'many'",
            "FILE:1: `http.connections` takes a whole number from 0 to 4294967295, not \"many\"",
        ),
        (
            "http.connections = -1",
            "FILE:1: `http.connections` takes a whole number from 0 to 4294967295, not -1",
        ),
        ("http.head_deadline = 10", "FILE:1: `http.head_deadline` takes a duration such as 250ms, not 10"),
        (
            "http.head_deadline = '10'",
            "FILE:1: `http.head_deadline` takes a duration such as 250ms, not \"10\"",
        ),
        ("http.cors = 'yes'", "FILE:1: `http.cors` takes true or false, not \"yes\""),
        ("http.password = 12345", "FILE:1: `http.password` takes a text"),
        ("doors = [1]", "FILE:1: `doors` takes a list, not [1]"),
    ];
    for (file, message) in table {
        assert_eq!(refusal(file, &[], &[]), message);
    }
    let message =
        "TRIFID_HTTP_LISTEN: `http.listen` takes an address and port such as 127.0.0.1:9090, not \"9090\"";
    assert_eq!(refusal("", &[("TRIFID_HTTP_LISTEN", "9090")], &[]), message);
}

#[test]
fn an_empty_variable_takes_an_optional_value_away() {
    let config = resolve("http.certificate = 'c.pem'", &[("TRIFID_HTTP_CERTIFICATE", "")], &[]).unwrap();
    assert_eq!(config.section::<Http>("http").unwrap().certificate, None);
    assert_eq!(config.setting("http.certificate").unwrap().origin.to_string(), "TRIFID_HTTP_CERTIFICATE");
    assert!(refusal("", &[("TRIFID_HTTP_LISTEN", "")], &[]).contains("not \"\""));
}

#[test]
fn a_file_that_is_no_toml_or_not_there_is_refused() {
    assert_eq!(refusal("http = = 1", &[], &[]), "FILE is not valid TOML");
    let layers = Layers { file: Some("no/such/file.toml".into()), ..Layers::default() };
    assert!(matches!(schema().resolve(&layers), Err(Error::Unreadable { .. })));
    assert!(matches!(Flag::set("http.listen"), Err(Error::NoAssignment(_))));
}

#[test]
fn what_show_prints_is_a_configuration_file_that_says_the_same() {
    let config = resolve("http.connections = 7\ndoors = ['a', 'b']", &[], &[]).unwrap();
    let shown = config.show(true).to_string();
    assert!(shown.contains("http.connections = 7  # "), "{shown}");
    assert!(shown.contains("# http.certificate =  # not set (default)"), "{shown}");
    assert!(
        shown.contains("# Where to listen, in two lines. [address and port such as 127.0.0.1:9090]"),
        "{shown}"
    );
    assert!(shown.contains("# A count. [connections]"), "{shown}");
    let again = resolve(&shown, &[], &[]).unwrap();
    let values = |config: &Config| config.settings().iter().map(|s| s.value.clone()).collect::<Vec<_>>();
    assert_eq!(values(&again), values(&config));
}

#[test]
fn a_secret_is_never_shown() {
    let config = resolve("", &[("TRIFID_HTTP_PASSWORD", "correct horse")], &[]).unwrap();
    let http: Http = config.section("http").unwrap();
    assert_eq!(http.password.reveal(), "correct horse");
    assert!(!config.show(true).to_string().contains("horse"));
    assert!(!format!("{http:?}").contains("horse"));
}

#[test]
#[should_panic(expected = "share one environment variable")]
fn two_keys_that_read_alike_as_variables_are_our_mistake() {
    crate::section! { struct One in "a" { /** One. */ b_c: bool = "true" } }
    crate::section! { struct Two in "a_b" { /** Two. */ c: bool = "true" } }
    assert!(One::default().b_c && Two::default().c);
    Schema::new(&[One::KEYS, Two::KEYS]);
}
