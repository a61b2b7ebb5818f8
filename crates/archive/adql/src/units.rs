//! Units of measure, as VOUnits 1.1 writes them, and their algebra.
//!
//! A [`Unit`] is a scale factor and a product of powers of symbols. Metadata passes through expressions as text;
//! a unit is parsed only where it is computed with: at `*`, `/`, SQRT and POWER, whose results have another unit,
//! and in IN_UNIT (ADQL 2.1 4.9.1), which needs the factor between two.
//!
//! What a symbol measures is a product of powers of base quantities ([`known::Base`]). Symbols that nobody knows
//! are base quantities of their own: they convert into themselves and their multiples and nothing else. Scales are
//! kept as numerator and denominator, so that `deg` in `mas` is 3,600,000 and not nearly so.
//!
//! Limits: exponents are rational with small terms; functions of units (`log(Hz)`) convert only into themselves;
//! temperatures have no offsets, as VOUnits has none.

mod algebra;
pub mod known;
mod parse;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use known::{Known, Prefix};

/// A unit of measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The number in front (VOUnits 1.1 2.10); 1 where there is none.
    scale: f64,
    /// The product: no two terms have the same symbol, no power is zero.
    terms: Vec<Term>,
}

/// A power of a symbol.
#[derive(Clone, Debug, PartialEq)]
struct Term {
    symbol: Symbol,
    power: Power,
}

/// What can be raised to a power.
#[derive(Clone, Debug, PartialEq)]
enum Symbol {
    /// A unit of VOUnits' list, by itself or with a prefix.
    Known(Option<Prefix>, &'static Known),
    /// A word that is on no list, with the prefix that it seems to have.
    Unknown(Option<Prefix>, Arc<str>),
    /// A word in quotes: not looked into (VOUnits 1.1 2.11), though it may have a prefix before the quotes.
    Quoted(Option<Prefix>, Arc<str>),
    /// A function of a unit: `log(Hz)`.
    Function(Arc<str>, Box<Unit>),
}

/// A rational exponent in lowest terms, the denominator positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Power {
    numerator: i32,
    denominator: i32,
}

/// Why a text is not a unit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} at character {at}")]
pub struct UnitError {
    /// What is wrong.
    message: &'static str,
    /// Where, from 1.
    at: usize,
}

impl Unit {
    /// The unit `1` of a pure number.
    pub const fn one() -> Self {
        Self { scale: 1.0, terms: Vec::new() }
    }

    /// Whether this is the unit of a pure number.
    pub fn is_one(&self) -> bool {
        self.terms.is_empty() && self.scale == 1.0
    }

    /// Whether every symbol is one that VOUnits lists.
    pub fn is_known(&self) -> bool {
        self.terms.iter().all(|term| match &term.symbol {
            Symbol::Known(..) => true,
            Symbol::Unknown(..) | Symbol::Quoted(..) => false,
            Symbol::Function(_, operand) => operand.is_known(),
        })
    }

    /// The first symbol that VOUnits does not list.
    pub fn unknown_symbol(&self) -> Option<String> {
        self.terms.iter().find_map(|term| match &term.symbol {
            Symbol::Known(..) => None,
            Symbol::Unknown(..) | Symbol::Quoted(..) => Some(term.symbol.to_string()),
            Symbol::Function(_, operand) => operand.unknown_symbol(),
        })
    }
}

impl fmt::Display for Unit {
    /// Divisors after one `/`, in parentheses if there are several; negative powers when there is nothing to divide.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() && self.scale == 1.0 {
            return f.write_str("1");
        }
        if self.scale != 1.0 {
            match self.scale {
                1e-5..1e16 => write!(f, "{}", self.scale)?,
                _ => write!(f, "{:e}", self.scale)?,
            }
        }
        let over = self.terms.iter().filter(|term| term.power.numerator > 0);
        if over.clone().next().is_none() {
            return product(f, self.terms.iter(), false);
        }
        product(f, over, false)?;
        let under = self.terms.iter().filter(|term| term.power.numerator < 0);
        match under.clone().count() {
            0 => Ok(()),
            1 => {
                f.write_str("/")?;
                product(f, under, true)
            }
            _ => {
                f.write_str("/(")?;
                product(f, under, true)?;
                f.write_str(")")
            }
        }
    }
}

fn product<'a>(
    f: &mut fmt::Formatter<'_>,
    terms: impl Iterator<Item = &'a Term>,
    inverted: bool,
) -> fmt::Result {
    for (index, term) in terms.enumerate() {
        if index > 0 {
            f.write_str(".")?;
        }
        let numerator = if inverted { -term.power.numerator } else { term.power.numerator };
        write!(f, "{}", term.symbol)?;
        match (numerator, term.power.denominator) {
            (1, 1) => {}
            (whole, 1) => write!(f, "**{whole}")?,
            (numerator, denominator) => write!(f, "**({numerator}/{denominator})")?,
        }
    }
    Ok(())
}

impl fmt::Display for Symbol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = |prefix: &Option<Prefix>| prefix.map_or("", Prefix::text);
        match self {
            Self::Known(before, known) => write!(f, "{}{}", prefix(before), known.symbol),
            Self::Unknown(before, word) => write!(f, "{}{word}", prefix(before)),
            Self::Quoted(before, word) => write!(f, "{}'{word}'", prefix(before)),
            Self::Function(name, operand) => write!(f, "{name}({operand})"),
        }
    }
}
