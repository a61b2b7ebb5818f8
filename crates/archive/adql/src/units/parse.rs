//! Reading units: VOUnits 1.1 appendix C.4, and the older ways in which columns are labelled.

use super::known::{Known, Prefix};
use super::{Power, Symbol, Term, Unit, UnitError};
use crate::limits;

impl Unit {
    /// Reads a unit as VOUnits 1.1 writes it. Symbols that nobody knows are accepted.
    ///
    /// # Errors
    ///
    /// What is wrong with the text, and where.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        Parser::read(text, false)
    }

    /// Reads what a column may be labelled with: VOUnits, or what FITS, OGIP and the CDS write: several `/`, products
    /// with a blank or `*`, powers with `^` or with nothing (`cm-2`).
    pub fn parse_label(text: &str) -> Option<Self> {
        Parser::read(text.trim(), true).ok()
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    legacy: bool,
}

impl<'a> Parser<'a> {
    fn read(text: &'a str, legacy: bool) -> Result<Unit, UnitError> {
        let mut parser = Self { text, at: 0, depth: 0, legacy };
        if text.len() > limits::UNIT_BYTES {
            return Err(parser.error("the unit is too long"));
        }
        let unit = parser.scaled()?;
        if parser.at < text.len() {
            return Err(parser.error("this does not belong to a unit"));
        }
        Ok(unit)
    }

    fn error(&self, message: &'static str) -> UnitError {
        UnitError { message, at: self.at + 1 }
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// The bytes from here that all fit.
    fn run(&mut self, fits: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.bytes().position(|byte| !fits(byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// `input` and `function_operand`: a scale factor and a product, or `1`.
    fn scaled(&mut self) -> Result<Unit, UnitError> {
        let scale = self.scale_factor()?;
        if scale == Some(1.0) && (self.rest().is_empty() || self.rest().starts_with(')')) {
            return Ok(Unit::one());
        }
        if scale.is_some() && self.legacy {
            self.run(|byte| matches!(byte, b' ' | b'.' | b'*'));
            if self.rest().starts_with('/') {
                return self.complete(Unit::one());
            }
        }
        let first = self.factor()?;
        let mut unit = self.complete(first)?;
        unit.scale *= scale.unwrap_or(1.0);
        if unit.scale.is_finite() && unit.scale > 0.0 {
            Ok(unit)
        } else {
            Err(self.error("the scale factor is out of range"))
        }
    }

    /// `scalefactor`: `10**n`, or a number that is not zero and shows digits on both sides of its point.
    fn scale_factor(&mut self) -> Result<Option<f64>, UnitError> {
        let start = self.at;
        if self.eat("10**") || (self.legacy && self.eat("10^")) {
            let power = self.numeric_power()?;
            return Ok(Some(10f64.powf(power.value())));
        }
        if self.run(|byte| byte.is_ascii_digit()).is_empty() {
            return Ok(None);
        }
        if self.rest().starts_with('.') && self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) {
            self.at += 1;
            self.run(|byte| byte.is_ascii_digit());
        }
        self.exponent();
        let number = &self.text[start..self.at];
        let zeros = number.starts_with('0') && !number.starts_with("0.");
        match number.parse::<f64>() {
            Ok(value) if value > 0.0 && value.is_finite() && !zeros => Ok(Some(value)),
            _ => {
                self.at = start;
                Err(self.error("this is not a scale factor"))
            }
        }
    }

    /// `e10` and the like, if it is one and not the unit `eV`.
    fn exponent(&mut self) {
        let rest = self.rest().as_bytes();
        let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
        if matches!(rest.first(), Some(b'e' | b'E')) && rest.get(1 + sign).is_some_and(u8::is_ascii_digit) {
            self.at += 1 + sign;
            self.run(|byte| byte.is_ascii_digit());
        }
    }

    /// `complete_expression`, its first factor read: a product, and at most one division.
    fn complete(&mut self, first: Unit) -> Result<Unit, UnitError> {
        let mut unit = first;
        loop {
            let divided = if self.eat("/") {
                true
            } else if self.product_sign() {
                false
            } else {
                return Ok(unit);
            };
            let factor = self.factor()?;
            unit = if divided { unit.over(&factor) } else { unit.times(&factor) }
                .ok_or_else(|| self.error("this cannot be written as a unit"))?;
            if divided && !self.legacy {
                return Ok(unit);
            }
        }
    }

    fn product_sign(&mut self) -> bool {
        if self.eat(".") {
            return true;
        }
        if !self.legacy {
            return false;
        }
        let sign = self.run(|byte| matches!(byte, b' ' | b'*'));
        !sign.is_empty()
    }

    /// `unit_expression`: a symbol with a power, a function, or parentheses.
    fn factor(&mut self) -> Result<Unit, UnitError> {
        if self.eat("(") {
            let unit = self.nested(|parser| {
                let first = parser.factor()?;
                parser.complete(first)
            })?;
            return match self.power()? {
                None => Ok(unit),
                // The grammar has no power here, though nobody could take it for something else.
                Some(power) if self.legacy => self.raised(&unit, power),
                Some(_) => Err(self.error("parentheses have no power")),
            };
        }
        let (symbol, is_function) = self.symbol()?;
        if is_function {
            return self.function(&symbol);
        }
        let power = self.power()?.unwrap_or(Power::ONE);
        if power.numerator == 0 {
            return Ok(Unit::one());
        }
        Ok(Unit { scale: 1.0, terms: vec![Term { symbol, power }] })
    }

    fn raised(&self, unit: &Unit, power: Power) -> Result<Unit, UnitError> {
        unit.to_power(power).ok_or_else(|| self.error("this cannot be written as a unit"))
    }

    fn nested<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T, UnitError>) -> Result<T, UnitError> {
        self.depth += 1;
        if self.depth > limits::UNIT_DEPTH {
            return Err(self.error("the unit is nested too deeply"));
        }
        let inner = body(self)?;
        self.depth -= 1;
        if self.eat(")") { Ok(inner) } else { Err(self.error("here `)` is missing")) }
    }

    /// `unit` up to its power, and whether a `(` follows that makes it a function.
    fn symbol(&mut self) -> Result<(Symbol, bool), UnitError> {
        if self.eat("%") {
            let percent = Known::find("%").expect("the list has it");
            return Ok((Symbol::Known(None, percent), false));
        }
        let word = self.run(|byte| byte.is_ascii_alphabetic());
        if self.rest().starts_with('\'') {
            return Ok((self.quoted(word)?, false));
        }
        if word.is_empty() {
            return Err(self.error("here a unit is missing"));
        }
        if self.eat("(") {
            return Ok((Symbol::Unknown(None, word.into()), true));
        }
        Ok((named(word), false))
    }

    fn quoted(&mut self, before: &str) -> Result<Symbol, UnitError> {
        let prefix = match before {
            "" => None,
            _ => Some(Prefix::find(before).ok_or_else(|| self.error("this is not a prefix"))?),
        };
        self.at += 1;
        let word = self.run(|byte| byte.is_ascii_alphabetic());
        if word.is_empty() || !self.eat("'") {
            return Err(self.error("quotes hold letters"));
        }
        Ok(Symbol::Quoted(prefix, word.into()))
    }

    /// A function, its `(` read. The square root is a power; of the others nothing is known but equality.
    fn function(&mut self, name: &Symbol) -> Result<Unit, UnitError> {
        let operand = self.nested(Self::scaled)?;
        let name = name.to_string();
        if name == "sqrt" {
            return self.raised(&operand, Power::new(1, 2).expect("a half is one"));
        }
        let symbol = Symbol::Function(name.into(), Box::new(operand));
        Ok(Unit { scale: 1.0, terms: vec![Term { symbol, power: Power::ONE }] })
    }

    fn power(&mut self) -> Result<Option<Power>, UnitError> {
        if self.eat("**") {
            return self.numeric_power().map(Some);
        }
        let bare = |c: char| matches!(c, '^' | '+' | '-') || c.is_ascii_digit();
        if self.legacy && self.rest().starts_with(bare) {
            self.eat("^");
            return self.numeric_power().map(Some);
        }
        Ok(None)
    }

    /// `numeric_power`: an integer, or in parentheses an integer, a decimal number or a fraction.
    fn numeric_power(&mut self) -> Result<Power, UnitError> {
        if !self.eat("(") {
            let sign = self.sign();
            let whole = self.digits()?;
            return self.checked_power(sign * whole, 1);
        }
        let sign = self.sign();
        let whole = self.digits()?;
        let (numerator, denominator) = if self.eat(".") {
            self.decimals(whole)?
        } else if self.eat("/") {
            (whole, self.digits()?)
        } else {
            (whole, 1)
        };
        let power = self.checked_power(sign * numerator, denominator)?;
        if self.eat(")") { Ok(power) } else { Err(self.error("here `)` is missing")) }
    }

    fn checked_power(&self, numerator: i32, denominator: i32) -> Result<Power, UnitError> {
        Power::new(numerator, denominator).ok_or_else(|| self.error("the powers are out of range"))
    }

    fn sign(&mut self) -> i32 {
        if self.eat("-") {
            return -1;
        }
        self.eat("+");
        1
    }

    fn digits(&mut self) -> Result<i32, UnitError> {
        let digits = self.run(|byte| byte.is_ascii_digit());
        digits.parse().map_err(|_| self.error("this is not a whole number"))
    }

    /// What follows the point of an exponent, as a fraction.
    fn decimals(&mut self, whole: i32) -> Result<(i32, i32), UnitError> {
        let digits = self.run(|byte| byte.is_ascii_digit());
        let shift = u32::try_from(digits.len()).ok().and_then(|count| 10i32.checked_pow(count));
        let fraction = shift.and_then(|shift| {
            let decimals: i32 = digits.parse().ok()?;
            Some((whole.checked_mul(shift)?.checked_add(decimals)?, shift))
        });
        fraction.ok_or_else(|| self.error("the powers are out of range"))
    }
}

/// What a word stands for (VOUnits 1.1 2.2): a symbol of the list; else a prefix and a symbol of the list; else a
/// prefix and a word; else a word.
fn named(word: &str) -> Symbol {
    if let Some(known) = Known::find(word) {
        return Symbol::Known(None, known);
    }
    // Both are reserved for a unit that was lost (VOUnits 1.1 2.2), and not micro-nknowns.
    if matches!(word, "unknown" | "UNKNOWN") {
        return Symbol::Unknown(None, word.into());
    }
    let splits = || Prefix::all().filter_map(|prefix| Some((prefix, word.strip_prefix(prefix.text())?)));
    let known = splits().find_map(|(prefix, rest)| {
        let known = Known::find(rest)?;
        (known.binary || !prefix.is_binary()).then_some(Symbol::Known(Some(prefix), known))
    });
    let unknown = || {
        let (prefix, rest) = splits().find(|(prefix, rest)| !prefix.is_binary() && !rest.is_empty())?;
        Some(Symbol::Unknown(Some(prefix), rest.into()))
    };
    known.or_else(unknown).unwrap_or_else(|| Symbol::Unknown(None, word.into()))
}
