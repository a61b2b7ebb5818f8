//! From keys to a plain structure, and the macro that declares both at once.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::{Error, Key};

/// Reads the values whose names lie below `section` into `T`.
pub(super) fn read<T: DeserializeOwned>(
    section: &str,
    values: impl Iterator<Item = (&'static str, Value)>,
) -> Result<T, Error> {
    let mut table = Table::new();
    for (name, value) in values {
        if let Some(rest) = below(section, name) {
            insert(&mut table, rest, value);
        }
    }
    table
        .try_into()
        .map_err(|source| Error::Section { section: section.to_owned(), source: Box::new(source) })
}

/// What is left of `name` below `section`. The empty section holds the names without a dot.
fn below<'a>(section: &str, name: &'a str) -> Option<&'a str> {
    if section.is_empty() {
        return (!name.contains('.')).then_some(name);
    }
    name.strip_prefix(section)?.strip_prefix('.')
}

fn insert(table: &mut Table, path: &str, value: Value) {
    let Some((head, rest)) = path.split_once('.') else {
        table.insert(path.to_owned(), value);
        return;
    };
    let inner = table.entry(head).or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(inner) = inner {
        insert(inner, rest, value);
    }
}

/// The structure that the defaults of `keys` make: what [`section!`](crate::section) implements `Default` with.
///
/// # Panics
/// If the defaults do not make a `T`, which no input can cause.
pub fn section_defaults<T: DeserializeOwned>(section: &str, keys: &'static [Key]) -> T {
    let values = keys.iter().filter_map(|key| Some((key.name, key.default_value()?)));
    match read(section, values) {
        Ok(value) => value,
        Err(error) => panic!("the defaults of section `{section}` do not fit its structure: {error:?}"),
    }
}

/// Declares a section of the configuration: a plain structure, its `Default`, and its list of keys, from one
/// text in which each setting states its meaning, its type, its default and, for a number, its unit.
///
/// ```
/// use trifid_base_runtime::{section, units::{Size, Span}};
///
/// section! {
///     /// Limits of the listener.
///     pub struct Options in "http" {
///         /// Where to listen.
///         listen: std::net::SocketAddr = "127.0.0.1:9090",
///         /// The largest body that is read.
///         body_limit: Size = "16MiB",
///         /// How long a client may take over its request's head.
///         head_deadline: Span = "10s",
///         /// Connections open at a time.
///         connections: u32 = "10000" in "connections",
///         /// The certificate; without one the listener speaks plain HTTP.
///         certificate: Option<std::path::PathBuf> = "",
///     }
/// }
///
/// assert_eq!(Options::default().body_limit, Size(16 << 20));
/// assert_eq!(Options::KEYS[0].name, "http.listen");
/// ```
///
/// Without `in "name"` the keys belong to no section, like `data_dir`.
#[macro_export]
macro_rules! section {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($settings:tt)* }) => {
        $crate::section! { @declare () $(#[$meta])* $vis struct $name { $($settings)* } }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident in $section:literal { $($settings:tt)* }) => {
        $crate::section! { @declare ($section) $(#[$meta])* $vis struct $name { $($settings)* } }
    };
    (@name () $field:ident) => { stringify!($field) };
    (@name ($section:literal) $field:ident) => { concat!($section, ".", stringify!($field)) };
    (
        @declare $section:tt $(#[$meta:meta])* $vis:vis struct $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident : $type:ty = $default:literal $(in $unit:literal)? ),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, $crate::serde::Deserialize)]
        #[serde(crate = "trifid_base_runtime::serde")]
        $vis struct $name {
            $( $(#[doc = $doc])+ $vis $field: $type, )*
        }

        impl $name {
            /// The name of the section; empty for the keys without one.
            $vis const SECTION: &'static str = concat! $section;

            /// The keys of the section.
            $vis const KEYS: &'static [$crate::config::Key] = &[
                $( $crate::config::Key {
                    name: $crate::section!(@name $section $field),
                    kind: <$type as $crate::config::Kinded>::KIND,
                    optional: <$type as $crate::config::Kinded>::OPTIONAL,
                    default: $default,
                    unit: concat!($($unit)?),
                    doc: concat!($($doc),+),
                } ),*
            ];
        }

        impl Default for $name {
            fn default() -> Self {
                $crate::config::section_defaults(Self::SECTION, Self::KEYS)
            }
        }
    };
}
