//! `cargo xtask tidy`: what the compiler does not see.
//!
//! Every rule looks at one text file at a time and answers with lines. A Rust file is looked at with its test
//! modules taken out where a rule speaks of the program's own code: a module behind `#[cfg(test)]`, found by
//! its brace as rustfmt places it, and files that are tests as a whole.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

const RULES: &str = "CONTRIBUTING.md, \"Tidiness\"";

/// Lines of program code in one file, above which the file says why on top.
const FILE_LINES_MAX: usize = 1_000;
/// The marker with which it says so, in its first lines.
const LONG_MARKER: &str = "//! long: ";
const LONG_MARKER_WITHIN: usize = 40;
/// Columns of a line of Rust. Rustfmt keeps code to 110; comments and texts get a little more.
const COLUMNS_MAX: usize = 120;

/// Files that are looked at, by the end of their name.
const TEXT: &[&str] = &["rs", "toml", "md", "sh", "py", "yml", "yaml", "json", "jsonld", "txt"];
/// Folders that are not.
const SKIPPED: &[&str] = &["target", ".git", "corpus", "artifacts", "node_modules"];
/// Where programs live that may print. The rest is libraries.
const PROGRAMS: &[&str] = &["crates/trifid/", "crates/rig/", "xtask/", "fuzz/"];

/// Left-overs, split so that this file does not find itself.
const LEFT_OVERS: &[&str] = &[
    concat!("to", "do!("),
    concat!("unimpl", "emented!("),
    concat!("db", "g!("),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
];
const OUTPUT: &[&str] = &[concat!("print", "ln!("), concat!("print", "!(")];
/// Folders of people, which differ from machine to machine.
const HOMES: &[&str] = &[concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/Us", "ers/")];

/// One text file, by its path below the workspace.
pub(crate) struct File<'a> {
    pub(crate) path: &'a str,
    pub(crate) text: &'a str,
}

impl File<'_> {
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether the whole file is tests.
    fn is_test(&self) -> bool {
        let folders = ["/tests/", "/benches/", "/testing/"];
        self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
            || folders.iter().any(|folder| self.path.contains(folder))
    }

    /// The numbered lines outside test modules.
    pub(crate) fn program_lines(&self) -> Vec<(usize, &str)> {
        if self.is_test() { Vec::new() } else { outside_tests(self.text) }
    }

    fn finding(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.path)
    }
}

/// The lines of `text` that no test module holds, numbered from one.
fn outside_tests(text: &str) -> Vec<(usize, &str)> {
    let mut kept = Vec::new();
    let mut lines = (1..).zip(text.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let attribute = line.trim_start() == "#[cfg(test)]";
        match lines.peek() {
            Some((_, next)) if attribute && opens_module(next) => {
                let close = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
                // Up to the brace in the attribute's own column.
                while lines.next().is_some_and(|(_, line)| line != close) {}
            }
            _ => kept.push((number, line)),
        }
    }
    kept
}

fn opens_module(line: &str) -> bool {
    let line = line.trim_start();
    let rest = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    rest.starts_with("mod ") && rest.ends_with('{')
}

fn findings(file: &File<'_>) -> Vec<String> {
    let rules = [left_overs, stray_output, too_long, machine_paths, whitespace, wide_lines];
    rules.iter().flat_map(|rule| rule(file)).collect()
}

fn left_overs(file: &File<'_>) -> Vec<String> {
    if !file.is_rust() {
        return Vec::new();
    }
    let found = |(number, line): (usize, &str)| {
        let left = LEFT_OVERS.iter().find(|left| holds_word(line, left))?;
        Some(file.finding(number, &format!("`{left}` left over")))
    };
    (1..).zip(file.text.lines()).filter_map(found).collect()
}

fn stray_output(file: &File<'_>) -> Vec<String> {
    if !file.is_rust() || PROGRAMS.iter().any(|program| file.path.starts_with(program)) {
        return Vec::new();
    }
    let code = |line: &str| !line.trim_start().starts_with("//");
    let prints = |line: &str| code(line) && OUTPUT.iter().any(|output| line.contains(output));
    let lines = file.program_lines().into_iter().filter(|(_, line)| prints(line));
    lines.map(|(number, _)| file.finding(number, "a library does not print")).collect()
}

fn too_long(file: &File<'_>) -> Vec<String> {
    if !file.is_rust() {
        return Vec::new();
    }
    let count = file.program_lines().len();
    let stated = file.text.lines().take(LONG_MARKER_WITHIN).any(|line| line.starts_with(LONG_MARKER));
    if count <= FILE_LINES_MAX || stated {
        return Vec::new();
    }
    vec![file.finding(
        1,
        &format!("{count} lines of program code; split it, or say why in `{LONG_MARKER}...` on top"),
    )]
}

fn machine_paths(file: &File<'_>) -> Vec<String> {
    let found = |line: &str| HOMES.iter().any(|home| begins_path(line, home));
    let lines = (1..).zip(file.text.lines()).filter(|(_, line)| found(line));
    lines.map(|(number, _)| file.finding(number, "a path of one machine")).collect()
}

/// Whether `home` stands in `line` as the beginning of a path, not inside a longer one such as a URL's.
fn begins_path(line: &str, home: &str) -> bool {
    line.match_indices(home).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"-_.~}".contains(before))
    })
}

fn whitespace(file: &File<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.split('\n')) {
        if line.ends_with([' ', '\t', '\r']) {
            found.push(file.finding(number, "white space at the end of the line"));
        }
        if file.is_rust() && line.starts_with('\t') {
            found.push(file.finding(number, "a tab as indentation"));
        }
    }
    if !file.text.is_empty() && !file.text.ends_with('\n') {
        found.push(file.finding(file.text.lines().count(), "no newline at the end of the file"));
    }
    found
}

fn wide_lines(file: &File<'_>) -> Vec<String> {
    if !file.is_rust() {
        return Vec::new();
    }
    // An address cannot be broken.
    let wide = |line: &str| line.chars().count() > COLUMNS_MAX && !line.contains("://");
    let lines = file.program_lines().into_iter().filter(|(_, line)| wide(line));
    lines.map(|(number, _)| file.finding(number, &format!("more than {COLUMNS_MAX} columns"))).collect()
}

/// Whether `word` stands in `line` without a letter before it.
fn holds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(|before| before.is_alphanumeric() || before == '_')
    })
}

/// Checks the files below `root`.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let mut found = Vec::new();
    each_file(root, root, |file| found.extend(findings(file)))?;
    crate::outcome(&found, RULES)
}

/// Calls `look` with every text file below `folder`, in the order of their paths.
pub(crate) fn each_file(root: &Path, folder: &Path, mut look: impl FnMut(&File<'_>)) -> anyhow::Result<()> {
    let mut paths = Vec::new();
    walk(folder, &mut paths)?;
    paths.sort();
    for path in &paths {
        let text = fs::read_to_string(path).with_context(|| format!("{} is not text", path.display()))?;
        look(&File { path: &path.strip_prefix(root)?.to_string_lossy(), text: &text });
    }
    Ok(())
}

fn walk(folder: &Path, paths: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let (kind, name) = (entry.file_type()?, entry.file_name());
        let name = name.to_string_lossy();
        if kind.is_dir() && !SKIPPED.contains(&name.as_ref()) {
            walk(&entry.path(), paths)?;
        }
        let ending = name.rsplit_once('.').map(|(_, ending)| ending);
        if kind.is_file()
            && (ending.is_some_and(|ending| TEXT.contains(&ending))
                || folder.file_name().is_some_and(|name| name == ".ci"))
        {
            paths.push(entry.path());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the rules say about one file, without its name.
    fn check(path: &str, text: &str) -> Vec<String> {
        let found = findings(&File { path, text });
        found.into_iter().map(|finding| finding.replace(&format!("{path}:"), "")).collect()
    }

    const LIBRARY: &str = "crates/base/log/src/lib.rs";

    #[test]
    fn left_overs_are_found_also_in_tests() {
        for left in LEFT_OVERS {
            let text = format!("fn a() {{\n    {left} }}\n");
            assert_eq!(check(LIBRARY, &text), [format!("2: `{left}` left over")]);
            assert_eq!(check("crates/base/log/tests/it/main.rs", &text).len(), 1);
        }
        assert!(check(LIBRARY, concat!("my_to", "do!(x)\n")).is_empty());
        assert!(check("docs/a.md", concat!("to", "do!(x)\n")).is_empty());
    }

    #[test]
    fn a_library_does_not_print_but_programs_and_tests_do() {
        let print = format!("    {}\"x\");\n", OUTPUT[0]);
        assert_eq!(check(LIBRARY, &print), ["1: a library does not print"]);
        assert!(check("crates/trifid/src/main.rs", &print).is_empty());
        assert!(check(LIBRARY, &format!("#[cfg(test)]\nmod tests {{\n{print}}}\n")).is_empty());
        assert!(check(LIBRARY, &format!("/// {}\n", OUTPUT[0])).is_empty());
        assert_eq!(check(LIBRARY, &format!("#[cfg(test)]\nmod tests {{\n}}\n{print}")).len(), 1);
    }

    #[test]
    fn a_long_file_says_why() {
        let long = "// a line\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(check(LIBRARY, &long).len(), 1);
        assert!(check(LIBRARY, &format!("{LONG_MARKER}a table.\n{long}")).is_empty());
        let tested =
            format!("{}#[cfg(test)]\nmod tests {{\n{long}}}\n", "// a line\n".repeat(FILE_LINES_MAX));
        assert!(check(LIBRARY, &tested).is_empty());
        assert!(check("crates/base/log/src/tests.rs", &long).is_empty());
    }

    #[test]
    fn paths_of_one_machine_are_found_in_every_text() {
        for home in HOMES {
            assert_eq!(check("docs/a.md", &format!("see {home}ada/x\n")), ["1: a path of one machine"]);
            assert_eq!(check(LIBRARY, &format!("let a = \"{home}x\";\n")).len(), 1);
            assert!(check("docs/a.md", &format!("https://example.org{home}x\n")).is_empty());
        }
    }

    #[test]
    fn whitespace_is_found() {
        assert_eq!(
            check(LIBRARY, "a \nb"),
            ["1: white space at the end of the line", "2: no newline at the end of the file"]
        );
        assert_eq!(check("docs/a.md", "a\r\n"), ["1: white space at the end of the line"]);
        assert_eq!(check(LIBRARY, "\tx\n"), ["1: a tab as indentation"]);
    }

    #[test]
    fn wide_lines_are_found_in_program_code() {
        let wide = "x".repeat(COLUMNS_MAX + 1);
        assert_eq!(check(LIBRARY, &format!("{wide}\n")).len(), 1);
        assert!(check(LIBRARY, &format!("// https://example.org/{wide}\n")).is_empty());
        assert!(check("docs/a.md", &format!("{wide}\n")).is_empty());
    }

    #[test]
    fn inner_test_modules_end_at_their_own_brace() {
        let text =
            "mod a {\n    #[cfg(test)]\n    mod tests {\n        fn b() {\n        }\n    }\n}\nlast\n";
        assert_eq!(outside_tests(text), [(1, "mod a {"), (7, "}"), (8, "last")]);
    }
}
