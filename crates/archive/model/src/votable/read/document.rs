//! The parts of a document around its rows: finding the table that is wanted, and its columns.
//!
//! The first TABLE with a DATA element is taken, or the one of an ordinal that is asked for; RESOURCEs may lie in
//! RESOURCEs. When no table has DATA, the first one with columns stands, without a row. GROUP, PARAM, LINK and elements
//! of other standards are passed over.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use trifid_archive_adql::types::{Field, Size, Type};

use super::super::declare::{size, type_of};
use super::super::limits;
use super::super::writer::Serialization;
use super::incoming::{Atom, Incoming, Null};
use super::scan::{Mark, Scanner, Text};
use crate::read::{About, Fault, ReadError};
use crate::write::Info;

/// A table that was found.
#[derive(Default)]
pub(super) struct Table {
    pub(super) columns: Arc<[Incoming]>,
    pub(super) about: About,
    /// How its rows are carried; nothing when it has no DATA.
    pub(super) serialization: Option<Serialization>,
}

/// A document on the way to its table.
pub(super) struct Document {
    wanted: usize,
    /// Tables with DATA seen so far.
    seen: usize,
    /// Bytes of metadata that may still be kept.
    room: usize,
    infos: Vec<Info>,
    /// The columns of tables with an ID, for `<TABLE ref>`.
    known: HashMap<String, Arc<[Incoming]>>,
    /// The first table without DATA.
    bare: Option<Table>,
    text: Text,
}

/// A TABLE whose DATA has not come yet.
#[derive(Default)]
struct Open {
    id: Option<String>,
    columns: Vec<Incoming>,
    /// Of the table that it refers to.
    template: Option<Arc<[Incoming]>>,
    about: About,
    has_data: bool,
}

impl Document {
    pub(super) fn new(wanted: usize) -> Self {
        Self {
            wanted,
            seen: 0,
            room: limits::TEXT_BYTES,
            infos: Vec::new(),
            known: HashMap::new(),
            bare: None,
            text: Text::default(),
        }
    }

    /// Reads up to the first row of the table that is wanted, or to the end of the document.
    pub(super) fn find<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<Table, ReadError> {
        root(scanner)?;
        let mut open: Option<Open> = None;
        loop {
            match scanner.next()? {
                Mark::Eof => return self.without_data(scanner),
                Mark::End if scanner.tag.name() == b"TABLE" => {
                    if let Some(table) = open.take() {
                        self.close(table);
                    }
                }
                Mark::End => {}
                Mark::Start => {
                    if let Some(serialization) = self.element(scanner, &mut open)? {
                        let table = open.unwrap_or_default();
                        return Ok(self.table(table, Some(serialization)));
                    }
                }
            }
        }
    }

    /// Reads what follows the rows, keeping INFO elements, to the end of the document.
    pub(super) fn finish<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<Vec<Info>, ReadError> {
        loop {
            match scanner.next()? {
                Mark::Eof => return Ok(std::mem::take(&mut self.infos)),
                Mark::Start if scanner.tag.name() == b"INFO" => self.info(scanner)?,
                Mark::Start | Mark::End => {}
            }
        }
    }

    /// Takes an element outside of the rows; the serialisation when rows of the wanted table begin.
    fn element<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        open: &mut Option<Open>,
    ) -> Result<Option<Serialization>, ReadError> {
        match (scanner.tag.name(), open) {
            (b"RESOURCE", None) => Ok(None),
            (b"TABLE", open @ None) => {
                *open = Some(self.open(scanner)?);
                Ok(None)
            }
            (b"INFO", _) => self.info(scanner).map(|()| None),
            (b"FIELD", Some(table)) => self.field(scanner, table).map(|()| None),
            (b"DESCRIPTION", Some(table)) => {
                table.about.description = self.kept_text(scanner)?;
                Ok(None)
            }
            (b"DATA", Some(table)) => self.data(scanner, table),
            (b"TABLE" | b"RESOURCE", Some(_)) => {
                Err(scanner.malformed("a TABLE holds a TABLE or a RESOURCE"))
            }
            _ => scanner.skip_element().map(|()| None),
        }
    }

    fn open<R: Read>(&mut self, scanner: &Scanner<R>) -> Result<Open, ReadError> {
        let mut table = Open { id: scanner.attribute("ID")?, ..Open::default() };
        table.about.name = self.kept(scanner.attribute("name")?);
        if let Some(rows) = scanner.attribute("nrows")? {
            let rows = rows.trim().parse().map_err(|_| scanner.malformed("nrows is no number"))?;
            table.about.rows = Some(rows);
        }
        // VOTable 1.5 section 4.7: a table may take its structure from another one.
        if let Some(reference) = scanner.attribute("ref")? {
            table.template = self.known.get(&reference).cloned();
        }
        Ok(table)
    }

    fn data<R: Read>(
        &mut self,
        scanner: &mut Scanner<R>,
        table: &mut Open,
    ) -> Result<Option<Serialization>, ReadError> {
        table.has_data = true;
        let is_wanted = self.seen == self.wanted;
        self.seen += 1;
        if !is_wanted {
            return scanner.skip_element().map(|()| None);
        }
        loop {
            match scanner.next()? {
                Mark::Start => {}
                Mark::End | Mark::Eof => {
                    return Err(scanner.malformed("DATA holds no rows in a form that is known"));
                }
            }
            match scanner.tag.name() {
                b"TABLEDATA" => return Ok(Some(Serialization::TableData)),
                b"BINARY" => return Ok(Some(Serialization::Binary)),
                b"BINARY2" => return Ok(Some(Serialization::Binary2)),
                b"FITS" => {
                    let message =
                        "FITS within VOTable is not supported: send the FITS file itself, or TABLEDATA";
                    return Err(ReadError::new(scanner.at(), Fault::Unsupported(message.into())));
                }
                _ => scanner.skip_element()?,
            }
        }
    }

    fn field<R: Read>(&mut self, scanner: &mut Scanner<R>, table: &mut Open) -> Result<(), ReadError> {
        if table.columns.len() == limits::FIELDS {
            return Err(scanner.limit("the number of columns", limits::FIELDS));
        }
        let mut column = self.column(scanner, table.columns.len())?;
        let depth = scanner.depth();
        while scanner.depth() >= depth {
            match scanner.next()? {
                Mark::Start if scanner.depth() > depth + 1 => {}
                Mark::Start if scanner.tag.name() == b"DESCRIPTION" => {
                    column.field.description = self.kept_text(scanner)?;
                }
                Mark::Start if scanner.tag.name() == b"VALUES" => {
                    if let Some(null) = scanner.attribute("null")?.filter(|null| !null.trim().is_empty()) {
                        column.null = Some(Null::new(&null));
                    }
                }
                Mark::Start | Mark::End | Mark::Eof => {}
            }
        }
        table.columns.push(column);
        Ok(())
    }

    /// The column that the tag of a FIELD tells.
    fn column<R: Read>(&mut self, scanner: &Scanner<R>, ordinal: usize) -> Result<Incoming, ReadError> {
        let named = |wanted: &str| {
            Ok::<_, ReadError>(scanner.attribute(wanted)?.filter(|text| !text.trim().is_empty()))
        };
        let name = match named("name")? {
            Some(name) => name,
            None => named("ID")?.unwrap_or_else(|| format!("column_{}", ordinal + 1)),
        };
        let wrong = |what: &str, value: &str| {
            scanner.malformed(format!("column {name}: {what} {value:?} is not known"))
        };
        let datatype =
            named("datatype")?.ok_or_else(|| scanner.malformed(format!("column {name} has no datatype")))?;
        let atom = Atom::parse(&datatype).ok_or_else(|| wrong("datatype", shortened(&datatype)))?;
        let arraysize = named("arraysize")?.unwrap_or_default();
        let mut size = size(&arraysize).ok_or_else(|| wrong("arraysize", shortened(&arraysize)))?;
        // VOTable 1.5 section 2.2: `1` alone is to be avoided; those who write it mean one number.
        if size == Size::Fixed(1) && !matches!(atom, Atom::Char | Atom::Wide) {
            size = Size::One;
        }
        let xtype = named("xtype")?;
        let (ty, unicode) =
            type_of(&datatype, &size, xtype.as_deref()).ok_or_else(|| wrong("datatype", &datatype))?;
        let field = Field {
            ty,
            size,
            unicode,
            xtype: self.kept(xtype),
            unit: self.kept(named("unit")?),
            ucd: self.kept(named("ucd")?),
            utype: self.kept(named("utype")?),
            description: None,
            name: self
                .kept(Some(name))
                .ok_or_else(|| scanner.limit("all names in bytes", limits::TEXT_BYTES))?,
        };
        Ok(Incoming::new(checked(field), atom))
    }

    fn info<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<(), ReadError> {
        let name = scanner.attribute("name")?;
        let value = scanner.attribute("value")?;
        let text = self.kept_text(scanner)?;
        if self.infos.len() < limits::INFOS
            && let (Some(name), Some(value)) = (self.kept(name), self.kept(Some(value.unwrap_or_default())))
        {
            self.infos.push(Info { name, value, text });
        }
        Ok(())
    }

    /// The text of the element that has just begun, if there is room to keep it.
    fn kept_text<R: Read>(&mut self, scanner: &mut Scanner<R>) -> Result<Option<Arc<str>>, ReadError> {
        let depth = scanner.depth();
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        while scanner.depth() >= depth {
            scanner.next_with_text(&mut text, limits::CELL_BYTES)?;
        }
        let kept = self.kept(Some(text.lossy().trim().to_owned()).filter(|text| !text.is_empty()));
        self.text = text;
        Ok(kept)
    }

    fn kept(&mut self, text: Option<String>) -> Option<Arc<str>> {
        let text = text?;
        self.room = self.room.checked_sub(text.len())?;
        Some(text.into())
    }

    /// A table ends.
    fn close(&mut self, table: Open) {
        let (id, has_data) = (table.id.clone(), table.has_data);
        let table = self.table(table, None);
        if let Some(id) = id.filter(|_| self.known.len() < limits::TABLES) {
            self.known.insert(id, Arc::clone(&table.columns));
        }
        if !has_data && self.bare.is_none() && !table.columns.is_empty() {
            self.bare = Some(table);
        }
    }

    fn table(&self, table: Open, serialization: Option<Serialization>) -> Table {
        let columns = match table.template {
            Some(template) if table.columns.is_empty() => template,
            _ => table.columns.into(),
        };
        Table { columns, about: About { infos: self.infos.clone(), ..table.about }, serialization }
    }

    fn without_data<R: Read>(&mut self, scanner: &Scanner<R>) -> Result<Table, ReadError> {
        let bare = self.bare.take().filter(|_| self.seen == 0 && self.wanted == 0);
        bare.ok_or_else(|| match self.seen {
            0 => scanner.malformed("the document holds no table"),
            seen => scanner
                .malformed(format!("the document holds {seen} tables, not a number {}", self.wanted + 1)),
        })
    }
}

fn root<R: Read>(scanner: &mut Scanner<R>) -> Result<(), ReadError> {
    scanner.next()?;
    if scanner.tag.name() == b"VOTABLE" {
        return Ok(());
    }
    let name = String::from_utf8_lossy(scanner.tag.name()).into_owned();
    Err(scanner.malformed(format!("the document is a {:?}, not a VOTABLE", shortened(&name))))
}

/// A geometry has the size of its type.
fn checked(mut field: Field) -> Field {
    match field.ty {
        Type::Point => field.size = Size::Fixed(2),
        Type::Circle => field.size = Size::Fixed(3),
        _ => {}
    }
    field
}

/// So much of a text as a message should hold.
pub(super) fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(limits::QUOTED_BYTES)]
}
