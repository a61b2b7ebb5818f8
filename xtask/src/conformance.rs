//! `cargo xtask conformance`: what the standards ask for, and where the code answers.
//!
//! `standards/*.toml` list clauses with their state. A clause that is done must be cited in the code that keeps
//! it, one that is not must say why; the table shows how often program and tests cite each. Where one door follows
//! several standards, a number says nothing: then the name stands before it, `TAP 1.1 2.7.4 and 3.4`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::Deserialize;

use crate::tidy::{self, File};

const RULES: &str = "the head of each file in standards/";

/// One standard's list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Standard {
    standard: String,
    version: String,
    /// What stands before the numbers of its sections; where that is nothing, a number alone cites it.
    #[serde(default)]
    cited_as: String,
    /// Folders whose files may cite it.
    cited_in: Vec<String>,
    clause: Vec<Clause>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Clause {
    id: String,
    /// Tells the demands of one section apart, where they differ in state.
    #[serde(default)]
    part: String,
    what: String,
    state: State,
    #[serde(default)]
    why: String,
}

impl Clause {
    fn name(&self) -> String {
        format!("{} {}", self.id, self.part).trim_end().to_owned()
    }
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum State {
    Done,
    Coming,
    Exception,
}

/// How many lines cite a clause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Citations {
    program: usize,
    tests: usize,
}

/// Lines of program and lines of tests, as far as they may cite anything.
#[derive(Debug, Default)]
struct Code {
    program: Vec<String>,
    tests: Vec<String>,
}

impl Code {
    fn add(&mut self, file: &File<'_>) {
        let program = file.program_lines();
        let numbers: BTreeSet<usize> = program.iter().map(|(number, _)| *number).collect();
        self.program.extend(program.into_iter().map(|(_, line)| line.to_owned()));
        let tests = (1..).zip(file.text.lines()).filter(|(number, _)| !numbers.contains(number));
        self.tests.extend(tests.map(|(_, line)| spelled_out(line)));
    }

    fn citations(&self, standard: &str, id: &str) -> Citations {
        let count = |lines: &[String]| lines.iter().filter(|line| cites(line, standard, id)).count();
        Citations { program: count(&self.program), tests: count(&self.tests) }
    }
}

/// Whether `line` names the clause among the numbers that follow its standard's name, if that has one.
fn cites(line: &str, standard: &str, id: &str) -> bool {
    if standard.is_empty() {
        return names(line, id);
    }
    line.match_indices(standard).any(|(at, _)| names(numbers(&line[at + standard.len()..]), id))
}

/// The numbers of sections at the beginning of `rest`: in ` 2.1, 2.7.4 and 3.3 say so` everything before `say`.
fn numbers(rest: &str) -> &str {
    let of_numbers = |token: &str| {
        let word = token.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_letter = word.len() == 1 && word.starts_with(|c: char| c.is_ascii_uppercase());
        let joins = ["", "and", "to", "section", "sections", "appendix", "table", "tables"].contains(&word);
        joins || is_letter || word.starts_with(|c: char| c.is_ascii_digit())
    };
    let numbers = rest.split_inclusive(' ').take_while(|token| of_numbers(token));
    &rest[..numbers.map(str::len).sum()]
}

/// Whether `line` names the clause itself or one of its parts: `4.5.2` in `4.5.2.3`, but not in `4.5.20`
/// or `14.5.2`.
fn names(line: &str, id: &str) -> bool {
    line.match_indices(id).any(|(at, _)| {
        let mut before = line[..at].chars().rev();
        let part_of_longer = match before.next() {
            Some('.') => before.next().is_some_and(|c| c.is_ascii_digit()),
            other => other.is_some_and(|c| c.is_ascii_digit()),
        };
        !part_of_longer && !line[at + id.len()..].starts_with(|c: char| c.is_ascii_digit())
    })
}

/// A test may cite a clause in its name, `clause_4_9_...`, where the dots are underscores.
fn spelled_out(line: &str) -> String {
    if line.contains("fn ") { line.replace('_', ".") } else { line.to_owned() }
}

fn findings(standard: &Standard, code: &Code) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let found = standard.clause.iter().filter_map(|clause| {
        let what = match clause.state {
            _ if !seen.insert((&clause.id, &clause.part)) => "listed twice",
            State::Done if code.citations(&standard.cited_as, &clause.id).program == 0 => {
                "done, but cited nowhere"
            }
            State::Done if !clause.why.is_empty() => "done, and still has a reason why not",
            State::Coming | State::Exception if clause.why.is_empty() => "not done, without a reason",
            _ => return None,
        };
        Some(format!("{} {}: {what}", standard.standard, clause.name()))
    });
    found.collect()
}

fn table(standard: &Standard, code: &Code) -> String {
    let mut text = format!("{} v{}\n", standard.standard, standard.version);
    for clause in &standard.clause {
        let Citations { program, tests } = code.citations(&standard.cited_as, &clause.id);
        let state = format!("{:?}", clause.state).to_lowercase();
        text += &format!("{:>14}  {state:<9} {program:>4} {tests:>4}  {}", clause.name(), clause.what);
        text += &if clause.why.is_empty() { "\n".to_owned() } else { format!(" ({})\n", clause.why) };
    }
    text
}

/// Checks the lists, and prints them too if asked.
pub(crate) fn run(root: &Path, print: bool) -> anyhow::Result<()> {
    let mut found = Vec::new();
    for (standard, code) in standards(root)? {
        found.extend(findings(&standard, &code));
        if print {
            crate::report("        clause  state     code tests  what");
            crate::report(table(&standard, &code).trim_end());
        }
    }
    crate::outcome(&found, RULES)
}

fn standards(root: &Path) -> anyhow::Result<Vec<(Standard, Code)>> {
    let listed = fs::read_dir(root.join("standards"))?;
    let mut paths = listed.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    let read = |path: &PathBuf| {
        let text = fs::read_to_string(path)?;
        let standard: Standard =
            toml::from_str(&text).with_context(|| format!("{} is wrong", path.display()))?;
        let code = code(root, &standard.cited_in)?;
        Ok((standard, code))
    };
    paths.iter().map(read).collect()
}

fn code(root: &Path, folders: &[String]) -> anyhow::Result<Code> {
    let mut code = Code::default();
    for folder in folders {
        tidy::each_file(root, &root.join(folder), |file| {
            if file.is_rust() {
                code.add(file);
            }
        })?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Code {
        let mut code = Code::default();
        code.add(&File { path: "crates/a/src/lib.rs", text });
        code
    }

    /// What is found when one clause in this state stands over this code.
    fn check(state: &str, why: &str, text: &str) -> Vec<String> {
        let list = format!(
            "standard = 'S'\nversion = '1'\ncited_in = []\n[[clause]]\nid = '5.6.1'\nwhat = 'x'\nstate = '{state}'\nwhy = '{why}'"
        );
        findings(&toml::from_str(&list).unwrap(), &code(text))
    }

    #[test]
    fn a_clause_is_cited_as_a_whole_number() {
        for (line, cited) in [
            ("// 5.6.1", true),
            ("(5.6.1.4)", true),
            ("5.6.1; 6.4", true),
            ("5.6.11", false),
            ("15.6.1", false),
            ("2.5.6.1", false),
        ] {
            assert_eq!(cites(line, "", "5.6.1"), cited, "{line}");
        }
    }

    #[test]
    fn where_several_standards_meet_their_names_tell_them_apart() {
        for (line, id, cited) in [
            ("// TAP 1.1 2.7.4: as asked", "2.7.4", true),
            ("(TAP 1.1 2.1, 2.7.4 and 3.4)", "3.4", true),
            ("(TAP 1.1 sections 2.1 to 3.4)", "3.4", true),
            ("(TAP 1.1 2.7.6, DALI 1.1 3.4)", "3.4", false),
            ("TAP 1.1 says 3.4", "3.4", false),
            ("TAPRegExt 1.1 3.4", "3.4", false),
            ("the schema (TAP 1.1 appendix B)", "appendix B", true),
            ("3.4", "3.4", false),
        ] {
            assert_eq!(cites(line, "TAP 1.1", id), cited, "{line}");
        }
    }

    #[test]
    fn citations_of_program_and_tests_are_told_apart() {
        let code = code("// 5.6.1\n#[cfg(test)]\nmod tests {\n    // 5.6.1\n    fn clause_5_6_1_x() {}\n}\n");
        assert_eq!(code.citations("", "5.6.1"), Citations { program: 1, tests: 2 });
    }

    #[test]
    fn what_is_done_is_cited_and_what_is_not_has_a_reason() {
        assert!(check("done", "", "// 5.6.1\n").is_empty());
        assert!(check("coming", "later", "").is_empty());
        assert_eq!(check("done", "", "// 5.6.2\n"), ["S 5.6.1: done, but cited nowhere"]);
        assert_eq!(check("done", "why", "// 5.6.1\n"), ["S 5.6.1: done, and still has a reason why not"]);
        assert_eq!(check("exception", "", ""), ["S 5.6.1: not done, without a reason"]);
    }

    #[test]
    fn the_lists_of_this_workspace_can_be_read() {
        let standards = standards(&crate::root().unwrap()).unwrap();
        assert!(!standards.is_empty());
    }
}
