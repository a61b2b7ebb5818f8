//! Products, powers and conversions of units.

use super::known::{Base, LIGHT, PLANCK, Prefix};
use super::{Power, Symbol, Term, Unit};

/// The greatest numerator and denominator of a power. Enough for any unit, and small enough that products of a few
/// stay within 32 bits.
const MAX_POWER: i32 = 1000;

impl Power {
    pub(super) const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// A fraction in lowest terms; `None` if it divides by zero or its terms are too large.
    pub(super) fn new(numerator: i32, denominator: i32) -> Option<Self> {
        let divisor = greatest_divisor(numerator.checked_abs()?, denominator.checked_abs()?);
        if denominator == 0 {
            return None;
        }
        let sign = denominator.signum();
        let (numerator, denominator) = (sign * numerator / divisor, sign * denominator / divisor);
        let fits = numerator.abs() <= MAX_POWER && denominator <= MAX_POWER;
        fits.then_some(Self { numerator, denominator })
    }

    fn plus(self, other: Self) -> Option<Self> {
        let numerator = self.numerator * other.denominator + other.numerator * self.denominator;
        Self::new(numerator, self.denominator * other.denominator)
    }

    fn times(self, other: Self) -> Option<Self> {
        Self::new(self.numerator * other.numerator, self.denominator * other.denominator)
    }

    fn negated(self) -> Self {
        Self { numerator: -self.numerator, ..self }
    }

    pub(super) fn value(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    fn raise(self, base: f64) -> f64 {
        match self.denominator {
            1 => base.powi(self.numerator),
            _ => base.powf(self.value()),
        }
    }
}

fn greatest_divisor(mut a: i32, mut b: i32) -> i32 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

impl Unit {
    /// The product; `None` if it cannot be written as a unit.
    #[must_use]
    pub fn times(&self, other: &Self) -> Option<Self> {
        self.combined(other, Power::ONE)
    }

    /// The quotient; `None` if it cannot be written as a unit.
    #[must_use]
    pub fn over(&self, other: &Self) -> Option<Self> {
        self.combined(other, Power::ONE.negated())
    }

    /// The unit to the power `numerator / denominator`; `None` if it cannot be written as a unit.
    #[must_use]
    pub fn power(&self, numerator: i32, denominator: i32) -> Option<Self> {
        self.to_power(Power::new(numerator, denominator)?)
    }

    pub(super) fn to_power(&self, power: Power) -> Option<Self> {
        Self::one().combined(self, power)
    }

    /// This times `other` to a power.
    fn combined(&self, other: &Self, power: Power) -> Option<Self> {
        if power.numerator == 0 {
            return Some(self.clone());
        }
        let mut product = self.clone();
        product.scale *= power.raise(other.scale);
        for term in &other.terms {
            product.multiply(&term.symbol, term.power.times(power)?)?;
        }
        let fits = product.scale.is_finite() && product.scale > 0.0 && product.is_writable();
        fits.then_some(product)
    }

    /// Whether the grammar has a form for it: it has none for powers of functions.
    fn is_writable(&self) -> bool {
        let positive = self.terms.iter().any(|term| term.power.numerator > 0);
        self.terms.iter().all(|term| match term.symbol {
            Symbol::Function(..) => {
                term.power == Power::ONE || (positive && term.power == Power::ONE.negated())
            }
            _ => true,
        })
    }

    fn multiply(&mut self, symbol: &Symbol, power: Power) -> Option<()> {
        match self.terms.iter().position(|term| term.symbol == *symbol) {
            None => self.terms.push(Term { symbol: symbol.clone(), power }),
            Some(index) => {
                let sum = self.terms[index].power.plus(power)?;
                match sum.numerator {
                    0 => drop(self.terms.remove(index)),
                    _ => self.terms[index].power = sum,
                }
            }
        }
        Some(())
    }

    /// What a value in this unit is multiplied by to be in `other`; `None` if they do not measure the same.
    pub fn factor_to(&self, other: &Self) -> Option<f64> {
        let (from, to) = (Measure::of(self)?, Measure::of(other)?);
        if from.dimensions != to.dimensions {
            return None;
        }
        let factor = (from.numerator * to.denominator) / (from.denominator * to.numerator);
        (factor.is_finite() && factor > 0.0).then_some(factor)
    }

    /// Whether it measures something at all: neither a pure number nor a multiple of one.
    pub fn has_dimension(&self) -> bool {
        Measure::of(self).is_none_or(|measure| !measure.dimensions.is_empty())
    }

    /// How this and `other` name the same light: a wavelength, frequency, energy or wavenumber each. A value x in
    /// this unit is `factor * x` in the other, or `factor / x` if the second is true.
    pub fn spectral_to(&self, other: &Self) -> Option<(f64, bool)> {
        let (from, from_inverted) = self.as_frequency()?;
        let (to, to_inverted) = other.as_frequency()?;
        if let Some(factor) = self.factor_to(other) {
            return Some((factor, false));
        }
        // from * x or from / x are the hertz that to * y or to / y are as well; solved for y.
        let factor = if to_inverted { to / from } else { from / to };
        (factor.is_finite() && factor > 0.0).then_some((factor, from_inverted != to_inverted))
    }

    /// What makes hertz of a value in this unit, by multiplication, or by division if the second is true.
    fn as_frequency(&self) -> Option<(f64, bool)> {
        let measure = |symbols: &str| Self::parse(symbols).expect("a unit of the list");
        if let Some(factor) = self.factor_to(&measure("Hz")) {
            return Some((factor, false));
        }
        if let Some(factor) = self.factor_to(&measure("J")) {
            return Some((factor / PLANCK, false));
        }
        if let Some(factor) = self.factor_to(&measure("m")) {
            return Some((LIGHT / factor, true));
        }
        self.factor_to(&measure("m**-1")).map(|factor| (factor * LIGHT, false))
    }
}

/// A unit in terms of base quantities.
struct Measure<'a> {
    numerator: f64,
    denominator: f64,
    /// Sorted; no power is zero.
    dimensions: Vec<(Dimension<'a>, i32, i32)>,
}

/// A base quantity, or what is one because nobody knows better.
#[derive(Clone, Debug, PartialEq)]
enum Dimension<'a> {
    Base(Base),
    Word(&'a str),
    Function(&'a str, &'a Unit),
}

impl<'a> Measure<'a> {
    fn of(unit: &'a Unit) -> Option<Self> {
        let mut measure = Self { numerator: unit.scale, denominator: 1.0, dimensions: Vec::new() };
        for term in &unit.terms {
            measure.add_term(term)?;
        }
        measure.dimensions.retain(|(_, numerator, _)| *numerator != 0);
        measure.dimensions.sort_by_cached_key(|(dimension, ..)| dimension.key());
        Some(measure)
    }

    fn add_term(&mut self, term: &'a Term) -> Option<()> {
        match &term.symbol {
            Symbol::Known(prefix, known) => {
                self.scale(*prefix, (known.numerator, known.denominator), term.power);
                for &(base, power) in known.bases {
                    let power = Power::new(i32::from(power), 1)?.times(term.power)?;
                    self.add(Dimension::Base(base), power)?;
                }
                Some(())
            }
            Symbol::Unknown(prefix, word) | Symbol::Quoted(prefix, word) => {
                self.scale(*prefix, (1.0, 1.0), term.power);
                self.add(Dimension::Word(word), term.power)
            }
            Symbol::Function(name, operand) => self.add(Dimension::Function(name, operand), term.power),
        }
    }

    fn scale(&mut self, prefix: Option<Prefix>, (numerator, denominator): (f64, f64), power: Power) {
        let (over, under) = prefix.map_or((1.0, 1.0), Prefix::factor);
        let (over, under) = (over * numerator, under * denominator);
        let (over, under) = if power.numerator < 0 { (under, over) } else { (over, under) };
        let power = Power { numerator: power.numerator.abs(), ..power };
        self.numerator *= power.raise(over);
        self.denominator *= power.raise(under);
    }

    fn add(&mut self, dimension: Dimension<'a>, power: Power) -> Option<()> {
        match self.dimensions.iter_mut().find(|(present, ..)| *present == dimension) {
            None => self.dimensions.push((dimension, power.numerator, power.denominator)),
            Some((_, numerator, denominator)) => {
                let present = Power { numerator: *numerator, denominator: *denominator };
                let sum = present.plus(power)?;
                (*numerator, *denominator) = (sum.numerator, sum.denominator);
            }
        }
        Some(())
    }
}

impl Dimension<'_> {
    /// Something to sort by that is equal only for equal ones, as far as one unit can have them.
    fn key(&self) -> (u8, String) {
        match self {
            Self::Base(base) => (0, format!("{:03}", *base as u8)),
            Self::Word(word) => (1, (*word).to_owned()),
            Self::Function(name, unit) => (2, format!("{name}({unit})")),
        }
    }
}
