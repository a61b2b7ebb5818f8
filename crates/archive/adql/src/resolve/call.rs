//! Calls: which function, and its arguments in the types that it takes.

use super::Resolver;
use super::coerce::{
    Operand, cast, to_double, to_geometry, to_long, to_number, to_point, to_text, to_timestamp,
};
use super::error::{Error, Problem, Result};
use super::predicate::{boolean, like};
use crate::ast::{self, Arguments, Call};
use crate::functions::table::{Callee, Definition, Form, Parameter, Rewrite, Wants, Yields};
use crate::functions::{Aggregator, Function};
use crate::lift;
use crate::limits;
use crate::span::Span;
use crate::suggest::nearest;
use crate::tree::{Aggregate, Expr, Kind, Value};
use crate::types::Type;
use crate::udf;

/// A call whose function was found.
pub(super) struct Called<'q> {
    pub(super) definition: &'static Definition,
    /// The name as written.
    pub(super) name: &'q str,
    pub(super) arguments: &'q [ast::Expr],
    pub(super) span: Span,
}

impl Resolver<'_> {
    pub(super) fn call(&mut self, call: &ast::Call, span: Span) -> Result<Expr> {
        let definition = find(call, span)?;
        if let Callee::Aggregate(aggregator) = definition.callee {
            return self.aggregate(aggregator, definition, call, span);
        }
        let arguments = match &call.arguments {
            Arguments::List(list) if !call.distinct => &list[..],
            _ => return Err(only_for_aggregates(call, span)),
        };
        let called = Called { definition, name: &call.name.name.text, arguments, span };
        match definition.callee {
            Callee::Function(function) => self.function(function, &called),
            Callee::Rewrite(Rewrite::NoCaseMatch) => {
                let (_, mut arguments) = self.arguments(&called)?;
                let pattern = arguments.pop().expect("the form has two");
                let value = arguments.pop().expect("the form has two");
                Ok(like(value, pattern, true))
            }
            Callee::Rewrite(Rewrite::InUnit) => self.in_unit(&called),
            Callee::Rewrite(Rewrite::SpectralConvert) => self.spectral(&called),
            Callee::Aggregate(_) => unreachable!("aggregates were dealt with"),
        }
    }

    fn function(&mut self, function: Function, called: &Called<'_>) -> Result<Expr> {
        match function {
            Function::Point | Function::Circle | Function::Box | Function::Polygon => {
                self.constructor(function, called)
            }
            Function::Distance => self.distance(called),
            Function::Contains | Function::Intersects => self.geometric_predicate(function, called),
            Function::CoordSys => self.coordinate_system(called),
            Function::HealpixIndex if called.arguments.len() == 2 => self.healpix_of_point(called),
            Function::GeometryTransform => self.transform(called),
            _ => {
                let (form, arguments) = self.arguments(called)?;
                let compares = matches!(function, Function::Greatest | Function::Least | Function::NullIf);
                if compares && let Some(first) = arguments.first() {
                    ordered(first.ty, called.span)?;
                }
                Ok(plain(function, form, arguments))
            }
        }
    }

    // ---- arguments

    /// The form that a call has, and its arguments as the form wants them.
    pub(super) fn arguments(&mut self, called: &Called<'_>) -> Result<(&'static Form, Vec<Expr>)> {
        let form = form_of(called)?;
        let mut operands = Vec::with_capacity(called.arguments.len());
        for (index, argument) in called.arguments.iter().enumerate() {
            let wants = parameter(form, index).wants;
            let operand = Operand::new(self.value(argument)?, argument.span());
            let expr = self.wanted(wants, operand)?;
            operands.push(Operand::new(expr, argument.span()));
        }
        self.one_type(form, &mut operands)?;
        Ok((form, operands.into_iter().map(|operand| operand.expr).collect()))
    }

    /// One argument as it is wanted.
    fn wanted(&mut self, wants: Wants, operand: Operand) -> Result<Expr> {
        match wants {
            Wants::Double => to_double(operand),
            Wants::Long => to_long(operand),
            Wants::Number => to_number(operand),
            Wants::Text => to_text(operand),
            Wants::TextLiteral => {
                let span = operand.span;
                let expr = to_text(operand)?;
                match expr.as_literal() {
                    Some(_) => Ok(expr),
                    None => Err(Error::at(Problem::NotLiteral("this text"), span)),
                }
            }
            Wants::Timestamp => to_timestamp(operand),
            Wants::Point => to_point(operand),
            Wants::Geometry => to_geometry(operand),
            Wants::Any => Ok(operand.expr),
        }
    }

    /// Arguments that share a type are brought to one.
    fn one_type(&mut self, form: &Form, operands: &mut [Operand]) -> Result<()> {
        let shared = |index| matches!(parameter(form, index).wants, Wants::Any | Wants::Number);
        let alone = form.result != Yields::Arguments || (operands.len() < 2 && !form.variadic);
        if alone || !(0..operands.len()).all(shared) {
            return Ok(());
        }
        self.unify(operands, "arguments of one function").map(|_| ())
    }

    // ---- aggregates

    fn aggregate(
        &mut self,
        aggregator: Aggregator,
        definition: &'static Definition,
        call: &ast::Call,
        span: Span,
    ) -> Result<Expr> {
        self.check_place(call, span)?;
        let name = &*call.name.name.text;
        let arguments = match &call.arguments {
            Arguments::Star if aggregator == Aggregator::Count && !call.distinct => Vec::new(),
            Arguments::Star => {
                let takes = udf::usage(definition).into();
                let problem = Problem::Arguments { function: name.to_owned(), takes, given: "*".to_owned() };
                return Err(Error::at(problem, span));
            }
            Arguments::List(list) => {
                let called = Called { definition, name, arguments: list, span };
                self.scope().in_aggregate = true;
                let arguments = self.aggregated(aggregator, &called);
                self.scope().in_aggregate = false;
                arguments?
            }
        };
        let ty = result_of(aggregator, &arguments);
        let aggregate = Aggregate { aggregator, arguments, distinct: call.distinct, ty };
        let index = self.collected(aggregate);
        self.bound(index + 1, limits::AGGREGATES, "aggregates in one SELECT", span)?;
        Ok(Expr::new(Kind::Aggregate(index), ty))
    }

    fn check_place(&mut self, call: &ast::Call, span: Span) -> Result<()> {
        let Some(scope) = self.scopes.last() else { return Ok(()) };
        if scope.in_aggregate {
            return Err(Error::at(Problem::MisplacedAggregate("another one's argument"), span));
        }
        let Some(clause) = scope.clause.without_aggregates() else { return Ok(()) };
        let name = call.name.name.text.to_uppercase();
        let hint = match clause {
            "WHERE" => format!("a condition on groups stands in HAVING {name}(...)"),
            _ => format!("a query of its own can compute it: (SELECT {name}(...) FROM ...)"),
        };
        Err(Error::at(Problem::MisplacedAggregate(clause), span).hint(hint))
    }

    /// The arguments of an aggregate, in the types that the tree promises.
    fn aggregated(&mut self, aggregator: Aggregator, called: &Called<'_>) -> Result<Vec<Expr>> {
        let (_, mut arguments) = self.arguments(called)?;
        let span = called.arguments.first().map_or(called.span, ast::Expr::span);
        // An alias may stand for one.
        let aggregates =
            |argument: &Expr| lift::any(argument, &mut |it| matches!(it.kind, Kind::Aggregate(_)));
        if arguments.iter().any(aggregates) {
            return Err(Error::at(Problem::MisplacedAggregate("another one's argument"), span));
        }
        let Some(first) = arguments.first_mut() else { return Ok(arguments) };
        let taken = std::mem::replace(first, Expr::computed(Value::Null, Type::Null));
        *first = match aggregator {
            Aggregator::Sum if taken.ty.is_integer() => cast(taken, Type::Long),
            Aggregator::Sum => cast(taken, Type::Double),
            Aggregator::Min | Aggregator::Max => {
                ordered(taken.ty, span)?;
                taken
            }
            _ => taken,
        };
        Ok(arguments)
    }

    /// The place of an aggregate among those of the select; one that is there already is not computed twice.
    fn collected(&mut self, aggregate: Aggregate) -> usize {
        let present = std::mem::take(&mut self.scope().aggregates);
        let found = present.iter().position(|other| self.is_same(other, &aggregate));
        let scope = self.scope();
        scope.aggregates = present;
        found.unwrap_or_else(|| {
            scope.aggregates.push(aggregate);
            scope.aggregates.len() - 1
        })
    }

    fn is_same(&mut self, one: &Aggregate, other: &Aggregate) -> bool {
        one.aggregator == other.aggregator
            && one.distinct == other.distinct
            && one.arguments.len() == other.arguments.len()
            && one.arguments.iter().zip(&other.arguments).all(|(one, other)| self.same(one, other))
    }
}

fn ordered(ty: Type, span: Span) -> Result<()> {
    if ty.is_ordered() {
        return Ok(());
    }
    Err(Error::at(Problem::Type { wanted: "something that has an order".into(), found: ty }, span))
}

/// A call that needs nothing but its arguments.
fn plain(function: Function, form: &Form, arguments: Vec<Expr>) -> Expr {
    let ty = match form.result {
        Yields::Type(ty) => ty,
        Yields::Truth => return boolean(Kind::Call(function, arguments)),
        Yields::Arguments => arguments.first().map_or(Type::Null, |first| first.ty),
    };
    Expr::new(Kind::Call(function, arguments), ty)
}

/// See [`Aggregator`].
fn result_of(aggregator: Aggregator, arguments: &[Expr]) -> Type {
    match aggregator {
        Aggregator::Count => Type::Long,
        Aggregator::Avg | Aggregator::StdDev | Aggregator::Variance | Aggregator::Median => Type::Double,
        Aggregator::StringAgg => Type::Text,
        Aggregator::Histogram => Type::Array(crate::types::Element::Long),
        Aggregator::Sum | Aggregator::Min | Aggregator::Max => {
            arguments.first().map_or(Type::Null, |first| first.ty)
        }
    }
}

fn parameter(form: &Form, index: usize) -> &Parameter {
    &form.parameters[index.min(form.parameters.len() - 1)]
}

fn form_of(called: &Called<'_>) -> Result<&'static Form> {
    let given = called.arguments.len();
    let fits =
        |form: &&Form| form.parameters.len() == given || (form.variadic && given > form.parameters.len());
    called
        .definition
        .forms
        .iter()
        .find(fits)
        .ok_or_else(|| wrong_count(called, udf::usage(called.definition)))
}

/// The error for a number of arguments that no form has.
pub(super) fn wrong_count(called: &Called<'_>, takes: String) -> Box<Error> {
    let given = match called.arguments.len() {
        0 => "no argument".to_owned(),
        1 => "one argument".to_owned(),
        count => format!("{count} arguments"),
    };
    let problem = Problem::Arguments { function: called.name.to_owned(), takes: takes.into(), given };
    Error::at(problem, called.span)
}

fn find(call: &Call, span: Span) -> Result<&'static Definition> {
    let name = &*call.name.name.text;
    let known = Definition::find(name);
    match (&call.schema, known) {
        (None, Some(definition)) => Ok(definition),
        (Some(schema), known) => {
            let error =
                Error::at(Problem::UnknownFunction(format!("{schema}.{name}")), schema.span().to(span));
            Err(error.hint_if(known.map(|_| format!("functions are in no schema: {name}(...)"))))
        }
        (None, None) => {
            let error = Error::at(Problem::UnknownFunction(name.to_owned()), call.name.span());
            Err(error.hint_if(foreign(name).map(str::to_owned).or_else(|| {
                nearest(name, Definition::all_names()).map(|near| format!("did you mean {near}?"))
            })))
        }
    }
}

fn only_for_aggregates(call: &Call, span: Span) -> Box<Error> {
    let what = if call.distinct { "DISTINCT" } else { "*" };
    let problem = Problem::Unsupported(format!("only aggregate functions take {what}").into());
    Error::at(problem, span)
}

/// What to write for a function that other dialects have.
fn foreign(name: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 16] = [
        ("LN", "LOG is the natural logarithm"),
        ("CEIL", "it is called CEILING"),
        ("POW", "it is called POWER"),
        ("TRUNC", "it is called TRUNCATE"),
        ("RANDOM", "it is called RAND"),
        ("IFNULL", "it is called COALESCE"),
        ("ISNULL", "it is called COALESCE"),
        ("NVL", "it is called COALESCE"),
        ("IIF", "CASE WHEN ... THEN ... ELSE ... END does that"),
        ("CONCAT", "|| joins texts: a || b"),
        ("SQUARE", "POWER(x, 2) does that"),
        ("NOW", "there is no current time in ADQL: write a timestamp"),
        ("ABSOLUTE", "it is called ABS"),
        ("MEAN", "it is called AVG"),
        ("LCASE", "it is called LOWER"),
        ("UCASE", "it is called UPPER"),
    ];
    NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, hint)| *hint)
}
