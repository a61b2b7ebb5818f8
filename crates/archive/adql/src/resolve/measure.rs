//! What a computed value measures: its unit and its UCD, by the syntax tree.
//!
//! A column that is selected as it is keeps all that it says of itself. What is computed keeps what stays true: a sum
//! of degrees is in degrees, a product has the product of the units, a minimum of magnitudes is one and says so. A
//! number in the query fits any unit in sums and has none in products. No utype survives a computation, nor does the
//! UCD's claim to be the main one of its table.

use std::sync::Arc;

use super::Resolver;
use super::scope::Place;
use crate::ast::{self, Arguments, ExprKind};
use crate::functions::table::{Callee, Definition, Measure, Rewrite};
use crate::tree::{Kind, Operator, Value};
use crate::types::Field;
use crate::units::Unit;

/// A unit and a UCD, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Measured {
    pub(super) unit: Option<Arc<str>>,
    pub(super) ucd: Option<Arc<str>>,
    /// Whether it is a constant, which fits anything.
    neutral: bool,
}

impl Measured {
    fn of(field: &Field) -> Self {
        let blank = |text: &Option<Arc<str>>| text.clone().filter(|text| !text.trim().is_empty());
        let ucd = blank(&field.ucd).map(without_main);
        Self { unit: blank(&field.unit), ucd, neutral: false }
    }

    fn fixed(unit: &str, ucd: &str) -> Self {
        let text = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
        Self { unit: text(unit), ucd: text(ucd), neutral: false }
    }

    fn with_unit(unit: Option<Unit>) -> Self {
        let worth = unit.filter(|unit| unit.has_dimension() || unit.unknown_symbol().is_some());
        Self { unit: worth.map(|unit| unit.to_string().into()), ..Self::default() }
    }

    fn to_power(&self, numerator: i32, denominator: i32) -> Self {
        let unit = self.unit.as_ref().and_then(|unit| Unit::parse_label(unit));
        Self::with_unit(unit.and_then(|unit| unit.power(numerator, denominator)))
    }

    /// Without a UCD of `meta`: what names or counts things is no longer that when it was computed with.
    fn of_quantity(self) -> Self {
        Self { ucd: self.ucd.filter(|ucd| !ucd.starts_with("meta.")), ..self }
    }

    /// What both are, if that is one thing.
    fn common(self, other: Self) -> Self {
        match (self.neutral, other.neutral) {
            (true, _) => other,
            (_, true) => self,
            _ => Self {
                unit: self.unit.filter(|unit| other.unit.as_ref().is_some_and(|it| same_unit(unit, it))),
                ucd: self.ucd.filter(|ucd| other.ucd.as_ref() == Some(ucd)),
                neutral: false,
            },
        }
    }
}

/// Whether two units are one, perhaps in two spellings.
fn same_unit(one: &str, other: &str) -> bool {
    let factor = || Unit::parse_label(one)?.factor_to(&Unit::parse_label(other)?);
    one == other || factor() == Some(1.0)
}

/// `pos.eq.ra;meta.main` of something that is not the column itself.
fn without_main(ucd: Arc<str>) -> Arc<str> {
    if !ucd.contains("meta.main") {
        return ucd;
    }
    let words: Vec<&str> = ucd.split(';').filter(|word| *word != "meta.main").collect();
    words.join(";").into()
}

impl Resolver<'_> {
    /// What an expression measures. It was resolved before, so that its names are known to be there.
    pub(super) fn measured(&mut self, expr: &ast::Expr) -> Measured {
        match &expr.kind {
            ExprKind::Column { qualifier, name } => match self.find(qualifier.as_deref(), name) {
                Ok(place) => self.measured_place(place),
                Err(_) => Measured::default(),
            },
            ExprKind::Literal(_) => Measured { neutral: true, ..Measured::default() },
            ExprKind::Sign(_, operand) => self.measured(operand),
            ExprKind::Arithmetic(operator, left, right) => {
                let (left, right) = (self.measured(left), self.measured(right));
                arithmetic(*operator, left, right)
            }
            ExprKind::Cast(value, _) => self.measured(value),
            ExprKind::Case(case) => {
                let mut values: Vec<_> = case.branches.iter().map(|(_, then)| then).collect();
                values.extend(&case.otherwise);
                self.common_of(values)
            }
            ExprKind::Call(call) => self.measured_call(call),
            _ => Measured::default(),
        }
    }

    fn measured_place(&self, place: Place) -> Measured {
        match place {
            Place::Column(column) => Measured::of(self.field(column)),
            Place::Merged { depth, index } => {
                let scope = &self.scopes[self.scopes.len() - 1 - usize::from(depth)];
                Measured::of(&scope.merged[index].field)
            }
            Place::Output(index) => {
                let output = &self.scopes.last().expect("items stand in selects").outputs[index];
                match (&output.field, &output.expr.kind) {
                    (Some(field), _) => Measured::of(field),
                    (None, Kind::Column(column)) => Measured::of(self.field(*column)),
                    _ => Measured::default(),
                }
            }
        }
    }

    fn common_of<'q>(&mut self, values: impl IntoIterator<Item = &'q ast::Expr>) -> Measured {
        let all = values.into_iter().map(|value| self.measured(value)).reduce(Measured::common);
        all.unwrap_or_default()
    }

    fn measured_call(&mut self, call: &ast::Call) -> Measured {
        let Some(definition) = Definition::find(&call.name.name.text) else { return Measured::default() };
        let arguments = match &call.arguments {
            Arguments::List(list) => &list[..],
            Arguments::Star => &[],
        };
        if let Callee::Rewrite(rewrite) = definition.callee {
            return self.measured_rewrite(rewrite, arguments);
        }
        if let Measure::Fixed(unit, ucd) = definition.measure {
            return Measured::fixed(unit, ucd);
        }
        let Some(first) = arguments.first() else { return Measured::default() };
        match definition.measure {
            Measure::Nothing | Measure::Fixed(..) => Measured::default(),
            Measure::Kept => self.measured(first),
            Measure::Total => self.measured(first).of_quantity(),
            Measure::Common => self.common_of(arguments),
            Measure::Root => self.powered(first, 1, 2),
            Measure::Square => self.powered(first, 2, 1),
            Measure::Power => self.power(first, arguments.get(1)),
            Measure::Statistic(word) => statistic(self.measured(first), word),
        }
    }

    fn measured_rewrite(&mut self, rewrite: Rewrite, arguments: &[ast::Expr]) -> Measured {
        let unit = arguments.last().and_then(|unit| match &unit.kind {
            ExprKind::Literal(ast::Literal { value: Value::Text(text), .. }) => Some(Arc::clone(text)),
            _ => None,
        });
        match (rewrite, arguments.first()) {
            (Rewrite::InUnit, Some(value)) => Measured { unit, neutral: false, ..self.measured(value) },
            (Rewrite::SpectralConvert, _) => Measured { unit, ..Measured::default() },
            _ => Measured::default(),
        }
    }

    fn powered(&mut self, value: &ast::Expr, numerator: i32, denominator: i32) -> Measured {
        self.measured(value).to_power(numerator, denominator)
    }

    /// POWER: the result has a unit only if the exponent is known; then the exponent shaped the result.
    fn power(&mut self, value: &ast::Expr, exponent: Option<&ast::Expr>) -> Measured {
        let measured = self.measured(value);
        let Some(ExprKind::Literal(literal)) = exponent.map(|exponent| &exponent.kind) else {
            return Measured::default();
        };
        if measured.unit.is_none() {
            return Measured::default();
        }
        self.require(literal);
        match literal.value {
            Value::Integer(whole) => match i32::try_from(whole) {
                Ok(whole) => measured.to_power(whole, 1),
                Err(_) => Measured::default(),
            },
            _ => Measured::default(),
        }
    }
}

fn arithmetic(operator: Operator, left: Measured, right: Measured) -> Measured {
    let neutral = left.neutral && right.neutral;
    let of_two = |combine: fn(&Unit, &Unit) -> Option<Unit>| {
        let unit = |measured: &Measured| match &measured.unit {
            Some(unit) => Unit::parse_label(unit),
            None => Some(Unit::one()),
        };
        let both = unit(&left).zip(unit(&right));
        Measured::with_unit(both.and_then(|(left, right)| combine(&left, &right)))
    };
    match operator {
        _ if neutral => Measured { neutral, ..Measured::default() },
        Operator::Add | Operator::Subtract => left.common(right).of_quantity(),
        Operator::Multiply if left.unit.is_none() => Measured { unit: right.unit, ..Measured::default() },
        Operator::Multiply | Operator::Divide if right.unit.is_none() => {
            Measured { unit: left.unit, ..Measured::default() }
        }
        Operator::Multiply => of_two(Unit::times),
        Operator::Divide => of_two(Unit::over),
    }
}

/// The UCD of a statistic: the word says which; a UCD has one such word.
fn statistic(of: Measured, word: &str) -> Measured {
    let ucd = of.ucd.map(|ucd| if ucd.contains("stat.") { ucd } else { format!("{ucd};{word}").into() });
    Measured { unit: of.unit, ucd, neutral: false }
}
