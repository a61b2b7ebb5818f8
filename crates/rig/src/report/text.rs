//! The report for people: a block for each name, load and number of clients with a line for each side, the
//! ratios beneath, the targets at the end.

use super::{Cell, Ratio, Report};
use crate::figures::Spread;
use crate::verdict::{Bound, Target, Verdict};
use std::fmt::{self, Display, Formatter};

const SIDE_WIDTH: usize = 16;
const GAP: usize = 3;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        heading(self, f)?;
        let of_cell = |cell: &Cell| (cell.name.clone(), cell.load, cell.clients);
        let of_ratio = |ratio: &Ratio| (ratio.name.clone(), ratio.load, ratio.clients);
        let mut blocks = Vec::new();
        for block in self.cells.iter().map(of_cell) {
            if !blocks.contains(&block) {
                blocks.push(block);
            }
        }
        for wanted in blocks {
            let cells = self.cells.iter().filter(|cell| of_cell(cell) == wanted);
            let ratios = self.ratios.iter().filter(|ratio| of_ratio(ratio) == wanted);
            block(f, &cells.collect::<Vec<_>>(), &ratios.collect::<Vec<_>>())?;
        }
        writeln!(f, "\ntargets")?;
        self.targets.iter().try_for_each(|target| writeln!(f, "  {}", line_of(target)))
    }
}

fn heading(report: &Report, f: &mut Formatter<'_>) -> fmt::Result {
    let environment = &report.environment;
    writeln!(f, "trifid bench {} ({:?})", report.suite, report.mode)?;
    let (cpu, cores, kernel) = (&environment.cpu, environment.cores, &environment.kernel);
    writeln!(f, "  {cpu}, {cores} cores, Linux {kernel}, {} under durable stores", environment.file_system)?;
    let pinned = match environment.pinned {
        Some(pinned) => format!("server on core {}, generator on core {}", pinned.server, pinned.generator),
        None => "not pinned".to_owned(),
    };
    writeln!(
        f,
        "  trifid {} at {}, {} build, {pinned}",
        environment.version, environment.commit, environment.profile
    )
}

fn block(f: &mut Formatter<'_>, cells: &[&Cell], ratios: &[&Ratio]) -> fmt::Result {
    let Some(first) = cells.first() else { return Ok(()) };
    let offered = first.offered_per_s.map(|rate| format!(", {} offered a second", number(rate)));
    let clients = match first.clients {
        0 => String::new(),
        1 => ", 1 client".to_owned(),
        clients => format!(", {clients} clients"),
    };
    writeln!(f, "\n{}: {}{clients}{}", first.name, first.load, offered.unwrap_or_default())?;
    table(f, cells)?;
    ratios.iter().try_for_each(|ratio| {
        let multiple = ratio.multiple.as_ref().map_or_else(|| "not measured".to_owned(), multiple);
        writeln!(f, "  {} of {}: {multiple} of {}", ratio.figure, ratio.of, ratio.to)
    })
}

/// One line a cell, one column a figure, each as wide as its widest entry.
fn table(f: &mut Formatter<'_>, cells: &[&Cell]) -> fmt::Result {
    let mut lines: Vec<String> = vec![format!("  {:SIDE_WIDTH$}", "")];
    lines.extend(cells.iter().map(|cell| format!("  {:SIDE_WIDTH$}", cell.side)));
    for name in columns(cells) {
        let entry = |cell: &&Cell| cell.figures.get(name).map_or_else(|| "-".to_owned(), spread);
        let column: Vec<String> = std::iter::once(name.to_owned()).chain(cells.iter().map(entry)).collect();
        let width = column.iter().map(String::len).max().unwrap_or_default() + GAP;
        lines.iter_mut().zip(&column).for_each(|(line, entry)| line.push_str(&format!("{entry:>width$}")));
    }
    for (line, cell) in lines.iter_mut().skip(1).zip(cells).filter(|(_, cell)| cell.void_rounds > 0) {
        line.push_str(&format!("   {} void", cell.void_rounds));
    }
    lines.iter().try_for_each(|line| writeln!(f, "{line}"))
}

/// The names of all figures of a block, those that matter most first.
fn columns(cells: &[&Cell]) -> Vec<&'static str> {
    const ORDER: [&str; 9] = [
        "requests_per_s",
        "messages_per_s",
        "mb_per_s",
        "p50_us",
        "p99_us",
        "p99.9_us",
        "cpu_us",
        "cpu_ms_per_mb",
        "cpu_us_per_message",
    ];
    let mut names: Vec<&'static str> = cells.iter().flat_map(|cell| cell.figures.keys().copied()).collect();
    names.sort_by_key(|name| (ORDER.iter().position(|known| known == name).unwrap_or(ORDER.len()), *name));
    names.dedup();
    names
}

fn spread(spread: &Spread) -> String {
    if spread.rounds == 1 {
        return number(spread.median);
    }
    format!("{} ({}-{})", number(spread.median), number(spread.min), number(spread.max))
}

fn multiple(spread: &Spread) -> String {
    if spread.rounds == 1 {
        return format!("{:.2}x", spread.median);
    }
    format!("{:.2}x ({:.2}-{:.2})", spread.median, spread.min, spread.max)
}

/// Three to four digits are all that a measurement deserves.
fn number(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..1000.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn line_of(target: &Target) -> String {
    let (side, bound) = match target.bound {
        Bound::AtMost(bound) => ("at most", bound),
        Bound::AtLeast(bound) => ("at least", bound),
    };
    let goal = match target.goal {
        Some(goal) if target.goal_reached => format!(", goal {} reached", number(goal)),
        Some(goal) => format!(", goal {}", number(goal)),
        None => String::new(),
    };
    let verdict = match target.verdict {
        Verdict::Held => "held",
        Verdict::Missed => "MISSED",
        Verdict::NotJudged => "not judged",
    };
    let measured = target.measured.as_ref().map_or_else(|| "not measured".to_owned(), spread);
    format!("{verdict:10} {}: {measured}, {side} {}{goal}", target.name, number(bound))
}

#[cfg(test)]
mod tests {
    use crate::report::tests::sample;

    #[test]
    fn the_text_says_what_the_structure_says() {
        let text = sample().to_string();
        for part in [
            "trifid bench shapes (Full)",
            "Some CPU, 2 cores, Linux 6.1, ext4",
            "at abc+, release build, not pinned",
            "list of 20: paced, 50 clients, 1234 offered a second",
            "cpu_us of broker: 3.25x (3.00-3.50) of floor",
            "held       list of 20: CPU: 3.25 (3.00-3.50), at most 4.00, goal 2.50",
            "MISSED     stores: not measured, at least 0.50",
        ] {
            assert!(text.contains(part), "{part}\n---\n{text}");
        }
        let floor = text.lines().find(|line| line.trim_start().starts_with("floor")).unwrap();
        assert!(floor.contains("1234") && floor.contains("4.00") && floor.ends_with("1 void"), "{floor}");
    }
}
