//! Conversions of units: arithmetic with a factor that is known before the query runs.

use std::sync::Arc;

use super::Resolver;
use super::call::Called;
use super::coerce::cast;
use super::error::{Error, Problem, Result};
use crate::ast::{self, ExprKind};
use crate::tree::{Expr, Kind, Operator, Value};
use crate::types::Type;
use crate::units::Unit;

impl Resolver<'_> {
    /// IN_UNIT(value, 'unit') (ADQL 2.1 4.9.1): the value must have a unit, and the text be one that it converts into.
    pub(super) fn in_unit(&mut self, called: &Called<'_>) -> Result<Expr> {
        let (_, mut arguments) = self.arguments(called)?;
        arguments.truncate(1);
        let value = arguments.pop().expect("the form has two");
        let from = self.unit_of(&called.arguments[0])?;
        let to = self.unit_literal(&called.arguments[1])?;
        let factor = from.factor_to(&to).filter(|_| to.has_dimension());
        let factor = factor.ok_or_else(|| {
            let problem = format!("{from} does not convert into {to}");
            let error = Error::at(Problem::Unit(problem), called.arguments[1].span());
            error.hint_if(unknown_hint(&to))
        })?;
        Ok(scaled(value, factor))
    }

    /// `gavo_specconv(value, [from,] to)`.
    pub(super) fn spectral(&mut self, called: &Called<'_>) -> Result<Expr> {
        let (_, mut arguments) = self.arguments(called)?;
        let last = called.arguments.len() - 1;
        let from = match last {
            1 => self.unit_of(&called.arguments[0])?,
            _ => self.unit_literal(&called.arguments[1])?,
        };
        let to = self.unit_literal(&called.arguments[last])?;
        let (factor, inverted) = from.spectral_to(&to).ok_or_else(|| {
            let problem =
                format!("{from} and {to} are not both of a wavelength, frequency, energy or wavenumber");
            Error::at(Problem::Unit(problem), called.arguments[last].span())
        })?;
        arguments.truncate(1);
        let value = arguments.pop().expect("every form has a value");
        if !inverted {
            return Ok(scaled(value, factor));
        }
        let factor = Expr::computed(Value::Double(factor), Type::Double);
        let kind = Kind::Arithmetic(Operator::Divide, Box::new(factor), Box::new(value));
        Ok(Expr::new(kind, Type::Double))
    }

    /// The unit that an expression has by itself.
    fn unit_of(&mut self, expr: &ast::Expr) -> Result<Unit> {
        let unit = self.measured(expr).unit;
        let missing = || {
            Error::at(Problem::Unit("this has no unit that is known".to_owned()), expr.span())
                .hint("columns have units; numbers, and what is computed from them alone, have none")
        };
        let unit = unit.ok_or_else(missing)?;
        Unit::parse_label(&unit).filter(Unit::has_dimension).ok_or_else(|| {
            let problem = format!("the unit of this, {unit}, is not one to convert");
            Error::at(Problem::Unit(problem), expr.span())
        })
    }

    /// The unit that a literal spells; it shapes the tree.
    fn unit_literal(&mut self, expr: &ast::Expr) -> Result<Unit> {
        let ExprKind::Literal(literal) = &expr.kind else {
            return Err(Error::at(Problem::NotLiteral("a unit"), expr.span()));
        };
        self.require(literal);
        let text = match &literal.value {
            Value::Text(text) => Arc::clone(text),
            _ => return Err(Error::at(Problem::NotLiteral("a unit"), expr.span())),
        };
        let parsed = Unit::parse(&text);
        parsed.map_err(|error| {
            Error::at(Problem::Unit(format!("'{text}' is not a unit: {error}")), expr.span())
        })
    }
}

fn unknown_hint(unit: &Unit) -> Option<String> {
    unit.unknown_symbol().map(|symbol| format!("{symbol} is not a unit that VOUnits knows"))
}

/// A product with a factor; with one, the value itself.
fn scaled(value: Expr, factor: f64) -> Expr {
    let value = cast(value, Type::Double);
    if factor == 1.0 {
        return value;
    }
    let factor = Expr::computed(Value::Double(factor), Type::Double);
    let kind = Kind::Arithmetic(Operator::Multiply, Box::new(value), Box::new(factor));
    Expr::new(kind, Type::Double)
}
