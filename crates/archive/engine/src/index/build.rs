//! Making an index out of a whole column.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use arrow_schema::DataType;

use super::{Sorted, Values, canonical};
use crate::table::Row;

impl Sorted {
    /// An index over a column that is given in pieces, in the order of the rows; `None` for types without an order.
    pub fn build(column: usize, pieces: &[ArrayRef]) -> Option<Self> {
        match pieces.first()?.data_type() {
            DataType::UInt8
            | DataType::Int16
            | DataType::Int32
            | DataType::Int64
            | DataType::Timestamp(..) => {
                let (pairs, nulls) = pairs(pieces, integers)?;
                let made = grouped(pairs, nulls, |a, b| a.cmp(b));
                Some(made.named(column, |values| Values::Integer(Int64Array::from(values))))
            }
            DataType::Float32 | DataType::Float64 => {
                let (pairs, nulls) = pairs(pieces, doubles)?;
                let made = grouped(pairs, nulls, f64::total_cmp);
                Some(made.named(column, |values| Values::Double(Float64Array::from(values))))
            }
            DataType::Utf8 => Some(texts(column, pieces)),
            _ => None,
        }
    }
}

/// Values with their rows, and the rows without one.
type Pairs<T> = (Vec<(T, Row)>, Vec<Row>);

fn pairs<T>(pieces: &[ArrayRef], read: fn(&ArrayRef) -> Option<Vec<T>>) -> Option<Pairs<T>> {
    let total = pieces.iter().map(|piece| piece.len()).sum();
    let (mut found, mut nulls) = (Vec::with_capacity(total), Vec::new());
    let mut row: Row = 0;
    for piece in pieces {
        for (at, value) in read(piece)?.into_iter().enumerate() {
            if piece.is_null(at) {
                nulls.push(row);
            } else {
                found.push((value, row));
            }
            row += 1;
        }
    }
    Some((found, nulls))
}

fn integers(piece: &ArrayRef) -> Option<Vec<i64>> {
    Some(match piece.data_type() {
        DataType::UInt8 => widened(piece.as_primitive::<UInt8Type>().values()),
        DataType::Int16 => widened(piece.as_primitive::<Int16Type>().values()),
        DataType::Int32 => widened(piece.as_primitive::<Int32Type>().values()),
        DataType::Int64 => piece.as_primitive::<Int64Type>().values().to_vec(),
        DataType::Timestamp(..) => piece.as_primitive_opt::<TimestampMicrosecondType>()?.values().to_vec(),
        _ => return None,
    })
}

fn widened<T: Copy + Into<i64>>(values: &[T]) -> Vec<i64> {
    values.iter().map(|value| (*value).into()).collect()
}

fn doubles(piece: &ArrayRef) -> Option<Vec<f64>> {
    let plain = |value: f64| canonical(value + 0.0);
    Some(match piece.data_type() {
        DataType::Float32 => {
            piece.as_primitive::<Float32Type>().values().iter().map(|v| plain((*v).into())).collect()
        }
        DataType::Float64 => piece.as_primitive::<Float64Type>().values().iter().map(|v| plain(*v)).collect(),
        _ => return None,
    })
}

/// Distinct values, where their rows begin, and the rows.
struct Grouped<T> {
    values: Vec<T>,
    starts: Vec<u32>,
    rows: Vec<Row>,
}

impl<T> Grouped<T> {
    fn named(self, column: usize, values: impl FnOnce(Vec<T>) -> Values) -> Sorted {
        let unique = self.starts.len() - 1 == *self.starts.last().unwrap_or(&0) as usize;
        let starts = (!unique).then_some(self.starts);
        Sorted { column, values: values(self.values), starts, rows: self.rows }
    }
}

fn grouped<T: Copy>(
    mut pairs: Vec<(T, Row)>,
    nulls: Vec<Row>,
    order: impl Fn(&T, &T) -> std::cmp::Ordering,
) -> Grouped<T> {
    pairs.sort_unstable_by(|a, b| order(&a.0, &b.0).then(a.1.cmp(&b.1)));
    let mut made = Grouped { values: Vec::new(), starts: Vec::new(), rows: Vec::with_capacity(pairs.len()) };
    for (value, row) in pairs {
        if made.values.last().is_none_or(|last| order(last, &value).is_ne()) {
            made.starts.push(made.rows.len() as u32);
            made.values.push(value);
        }
        made.rows.push(row);
    }
    made.starts.push(made.rows.len() as u32);
    made.rows.extend(nulls);
    made
}

fn texts(column: usize, pieces: &[ArrayRef]) -> Sorted {
    let (mut found, mut nulls): Pairs<&str> = (Vec::new(), Vec::new());
    let values = pieces.iter().flat_map(|piece| piece.as_string::<i32>().iter());
    for (value, row) in values.zip(0..) {
        match value {
            Some(text) => found.push((text, row)),
            None => nulls.push(row),
        }
    }
    let made = grouped(found, nulls, |a, b| a.cmp(b));
    made.named(column, |values| Values::Text(StringArray::from(values)))
}
