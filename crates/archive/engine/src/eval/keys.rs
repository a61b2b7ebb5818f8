//! Rows as keys: what GROUP BY, DISTINCT, set operations and hash joins find rows by.
//!
//! A row's values are written one after the other as bytes, so that two rows are the same exactly if their
//! bytes are: NULL is the same as NULL, NaN as NaN, -0 as 0. An [`Interner`] keeps the bytes of distinct keys
//! in one buffer and numbers them, which costs no allocation for a key.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Float32Type, Float64Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, UInt8Type,
};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, TimeUnit};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::hash::{BuildHasher as _, Hasher as _};

use super::cells::mismatch;
use super::compare::Ordered as _;
use crate::error::QueryError;

/// Columns whose rows are to be written as keys.
pub struct Keys<'a>(Vec<Column<'a>>);

impl<'a> Keys<'a> {
    /// Those of these columns, side by side.
    pub fn new(columns: &'a [ArrayRef]) -> Result<Self, QueryError> {
        columns.iter().map(Column::new).collect::<Result<_, _>>().map(Self)
    }

    /// Appends a row's key.
    pub fn write(&self, row: usize, out: &mut Vec<u8>) {
        for column in &self.0 {
            column.write(row, out);
        }
    }

    /// Whether one of a row's values is NULL.
    pub fn any_null(&self, row: usize) -> bool {
        self.0.iter().any(|column| column.is_null(row))
    }
}

struct Column<'a> {
    nulls: Option<&'a NullBuffer>,
    values: Values<'a>,
}

enum Values<'a> {
    Nothing,
    Boolean(&'a BooleanArray),
    Byte(&'a PrimitiveArray<UInt8Type>),
    Short(&'a PrimitiveArray<Int16Type>),
    Int(&'a PrimitiveArray<Int32Type>),
    Long(&'a PrimitiveArray<Int64Type>),
    Instant(&'a PrimitiveArray<TimestampMicrosecondType>),
    Float(&'a PrimitiveArray<Float32Type>),
    Double(&'a PrimitiveArray<Float64Type>),
    Text(&'a StringArray),
    Tuple(usize, Box<Column<'a>>),
    List(&'a [i32], Box<Column<'a>>),
}

impl<'a> Column<'a> {
    fn new(array: &'a ArrayRef) -> Result<Self, QueryError> {
        let values = match array.data_type() {
            DataType::Null => Values::Nothing,
            DataType::Boolean => Values::Boolean(array.as_boolean()),
            DataType::UInt8 => Values::Byte(array.as_primitive()),
            DataType::Int16 => Values::Short(array.as_primitive()),
            DataType::Int32 => Values::Int(array.as_primitive()),
            DataType::Int64 => Values::Long(array.as_primitive()),
            DataType::Timestamp(TimeUnit::Microsecond, _) => Values::Instant(array.as_primitive()),
            DataType::Float32 => Values::Float(array.as_primitive()),
            DataType::Float64 => Values::Double(array.as_primitive()),
            DataType::Utf8 => Values::Text(array.as_string()),
            DataType::FixedSizeList(_, size) => {
                let items = Self::new(array.as_fixed_size_list().values())?;
                Values::Tuple(*size as usize, Box::new(items))
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                Values::List(list.value_offsets(), Box::new(Self::new(list.values())?))
            }
            _ => return Err(mismatch(array)),
        };
        Ok(Self { nulls: array.nulls(), values })
    }

    fn is_null(&self, row: usize) -> bool {
        matches!(self.values, Values::Nothing) || self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }

    fn write(&self, row: usize, out: &mut Vec<u8>) {
        if self.is_null(row) {
            return out.push(0);
        }
        out.push(1);
        match &self.values {
            Values::Nothing => {}
            Values::Boolean(array) => out.push(array.value(row).into()),
            Values::Byte(array) => out.push(array.value(row)),
            Values::Short(array) => out.extend(array.value(row).to_le_bytes()),
            Values::Int(array) => out.extend(array.value(row).to_le_bytes()),
            Values::Long(array) => out.extend(array.value(row).to_le_bytes()),
            Values::Instant(array) => out.extend(array.value(row).to_le_bytes()),
            Values::Float(array) => out.extend(array.value(row).key().to_le_bytes()),
            Values::Double(array) => out.extend(array.value(row).key().to_le_bytes()),
            Values::Text(array) => {
                let text = array.value(row);
                out.extend((text.len() as u32).to_le_bytes());
                out.extend(text.as_bytes());
            }
            Values::Tuple(size, items) => {
                (row * size..(row + 1) * size).for_each(|item| items.write(item, out));
            }
            Values::List(offsets, items) => {
                let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
                out.extend(((end - start) as u32).to_le_bytes());
                (start..end).for_each(|item| items.write(item, out));
            }
        }
    }
}

/// Distinct keys, numbered from 0 in the order in which they came.
#[derive(Default)]
pub struct Interner {
    /// Hashes and numbers: the hash spares most looks at the bytes, and all when the table grows.
    table: HashTable<(u64, u32)>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    state: foldhash::fast::RandomState,
}

impl Interner {
    /// The number of a key, and whether it is new.
    pub fn intern(&mut self, key: &[u8]) -> Result<(usize, bool), QueryError> {
        let next = u32::try_from(self.ends.len())
            .map_err(|_| QueryError::TooLarge("more than 2^32 different keys".into()))?;
        let (bytes, ends, hash) = (&self.bytes, &self.ends, self.hash(key));
        let same =
            |(other, number): &(u64, u32)| *other == hash && stored(bytes, ends, *number as usize) == key;
        match self.table.entry(hash, same, |(hash, _)| *hash) {
            Entry::Occupied(found) => Ok((found.get().1 as usize, false)),
            Entry::Vacant(free) => {
                free.insert((hash, next));
                self.bytes.extend_from_slice(key);
                self.ends.push(self.bytes.len());
                Ok((next as usize, true))
            }
        }
    }

    /// The number of a key, if it is here.
    pub fn find(&self, key: &[u8]) -> Option<usize> {
        let hash = self.hash(key);
        let same = |(other, number): &(u64, u32)| {
            *other == hash && stored(&self.bytes, &self.ends, *number as usize) == key
        };
        self.table.find(hash, same).map(|(_, number)| *number as usize)
    }

    fn hash(&self, key: &[u8]) -> u64 {
        let mut hasher = self.state.build_hasher();
        hasher.write(key);
        hasher.finish()
    }

    /// The bytes of the key with a number.
    pub fn key(&self, number: usize) -> &[u8] {
        stored(&self.bytes, &self.ends, number)
    }

    /// How many keys.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Memory held.
    pub fn size(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * size_of::<usize>() + self.table.allocation_size()
    }
}

fn stored<'a>(bytes: &'a [u8], ends: &[usize], number: usize) -> &'a [u8] {
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &bytes[start..ends[number]]
}
