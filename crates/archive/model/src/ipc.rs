//! Arrow IPC: batches as they lie in memory (Arrow columnar format, IPC).
//!
//! **Written** as a stream. The metadata of each field say what VOTable would: `datatype`, `arraysize`,
//! `xtype`, and `unit`, `ucd`, `utype` and `description` where the column has them; the schema's say the
//! table's name and description and the facts of the request. How the result ended is known only after the
//! last row, when the schema is long gone: a result that is not complete ends with one more batch, without
//! rows, whose message carries the metadata `QUERY_STATUS` = `OVERFLOW` or `ERROR`, the latter with
//! `message`. Readers that do not look for it see an empty batch; pyarrow shows it by
//! `read_next_batch_with_custom_metadata`.
//!
//! **Read** from streams and files alike, a file being a stream behind a signature; its footer is not needed.
//! Columns of others become ours by [`crate::adopt`]. A message is bounded, and what the decoder cannot bear
//! is told as an error.

use std::collections::HashMap;
use std::io::{self, Read};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_buffer::Buffer;
use arrow_ipc::convert::{fb_to_schema, metadata_to_fb};
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::writer::{
    DictionaryTracker, EncodedData, IpcDataGenerator, IpcWriteOptions, StreamWriter, write_message,
};
use arrow_ipc::{Message, MessageBuilder, MessageHeader, RecordBatchBuilder};
use arrow_schema::{ArrowError, Field as ArrowField, Schema, SchemaRef};
use flatbuffers::FlatBufferBuilder;
use trifid_archive_adql::types::Field;

use crate::batch::physical;
use crate::limits::{IPC_BODY_BYTES_MAX, IPC_METADATA_BYTES_MAX};
use crate::read::{About, At, Fault, ReadError, TableReader};
use crate::votable::{Serialization, declare};
use crate::write::{End, Head, Info, TableWriter, WriteError};
use crate::{adopt, cell};

/// The metadata key of how a result ended.
const STATUS: &str = "QUERY_STATUS";

/// An Arrow stream under way.
pub struct Writer {
    head: Head,
    schema: SchemaRef,
    /// Writes into memory, which cannot fail.
    inner: Option<StreamWriter<Vec<u8>>>,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("head", &self.head).finish_non_exhaustive()
    }
}

impl Writer {
    /// A writer of this table.
    pub fn new(head: Head) -> Self {
        let schema = schema(&head);
        Self { head, schema, inner: None }
    }

    /// Lets the inner writer append to the caller's buffer.
    fn with(
        &mut self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut StreamWriter<Vec<u8>>) -> Result<(), ArrowError>,
    ) {
        let Some(inner) = &mut self.inner else { return };
        std::mem::swap(inner.get_mut(), out);
        let written = write(inner);
        debug_assert!(written.is_ok(), "our own schema and columns are encoded: {written:?}");
        std::mem::swap(inner.get_mut(), out);
    }
}

impl TableWriter for Writer {
    fn begin(&mut self, out: &mut Vec<u8>) {
        self.inner = StreamWriter::try_new_with_options(std::mem::take(out), &self.schema, options()).ok();
        if let Some(inner) = &mut self.inner {
            std::mem::swap(inner.get_mut(), out);
        }
    }

    fn rows(&mut self, batch: &RecordBatch, rows: Range<usize>, out: &mut Vec<u8>) -> Result<(), WriteError> {
        // Refuses a batch of other types, which a reader would take for garbage.
        cell::columns(&self.head.fields, batch)?;
        let part = batch.slice(rows.start, rows.len());
        let with_rows = RecordBatchOptions::new().with_row_count(Some(part.num_rows()));
        let part =
            RecordBatch::try_new_with_options(self.schema.clone(), part.columns().to_vec(), &with_rows);
        let part = part.map_err(|error| WriteError::Physical {
            column: Arc::from("*"),
            expected: "the schema announced".to_owned(),
            found: error.to_string(),
        })?;
        self.with(out, |inner| inner.write(&part));
        Ok(())
    }

    fn finish(mut self: Box<Self>, end: &End, out: &mut Vec<u8>) {
        let said = match end {
            End::Complete => None,
            End::Overflow => Some(HashMap::from([(STATUS.to_owned(), "OVERFLOW".to_owned())])),
            End::Failed(message) => Some(HashMap::from([
                (STATUS.to_owned(), "ERROR".to_owned()),
                ("message".to_owned(), message.to_string()),
            ])),
        };
        let schema = self.schema.clone();
        self.with(out, |inner| {
            if let Some(said) = said {
                write_message(inner.get_mut(), last_words(&schema, &said)?, &options())?;
            }
            inner.finish()
        });
    }
}

fn options() -> IpcWriteOptions {
    IpcWriteOptions::default()
}

fn schema(head: &Head) -> SchemaRef {
    let fields: Vec<ArrowField> = head.fields.iter().map(arrow_field).collect();
    let mut metadata: HashMap<String, String> =
        head.infos.iter().map(|info| (info.name.to_string(), info.value.to_string())).collect();
    for (key, value) in [("name", &head.name), ("description", &head.description)] {
        if let Some(value) = value {
            metadata.insert(key.to_owned(), value.to_string());
        }
    }
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

/// The Arrow field of a column with all that it says of itself.
pub fn arrow_field(field: &Field) -> ArrowField {
    let declared = declare::declare(field, Serialization::TableData);
    let said = [
        ("datatype", Some(declared.datatype)),
        ("arraysize", declared.arraysize.as_deref()),
        ("xtype", declared.xtype.as_deref().filter(|_| field.xtype.is_some())),
        ("unit", field.unit.as_deref()),
        ("ucd", field.ucd.as_deref()),
        ("utype", field.utype.as_deref()),
        ("description", field.description.as_deref()),
    ];
    let metadata =
        said.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?.to_owned()))).collect();
    ArrowField::new(field.name.as_ref(), physical(field.ty), true).with_metadata(metadata)
}

/// The message of a batch without rows that carries metadata. Arrow's own encoder has no place for them, so
/// its message is taken apart and put together again with them.
fn last_words(schema: &SchemaRef, said: &HashMap<String, String>) -> Result<EncodedData, ArrowError> {
    let empty = RecordBatch::new_empty(schema.clone());
    let mut tracker = DictionaryTracker::new(false);
    let (_, encoded) =
        IpcDataGenerator::default().encode(&empty, &mut tracker, &options(), &mut Default::default())?;
    let message = arrow_ipc::root_as_message(&encoded.ipc_message)
        .map_err(|error| ArrowError::IpcError(error.to_string()))?;
    let Some(batch) = message.header_as_record_batch() else {
        return Err(ArrowError::IpcError("the message of a batch is none".to_owned()));
    };
    let mut builder = FlatBufferBuilder::new();
    let said = metadata_to_fb(&mut builder, said);
    let nodes: Vec<_> = batch.nodes().iter().flatten().copied().collect();
    let buffers: Vec<_> = batch.buffers().iter().flatten().copied().collect();
    let (nodes, buffers) = (builder.create_vector(&nodes), builder.create_vector(&buffers));
    let mut header = RecordBatchBuilder::new(&mut builder);
    header.add_length(0);
    header.add_nodes(nodes);
    header.add_buffers(buffers);
    let header = header.finish().as_union_value();
    let mut whole = MessageBuilder::new(&mut builder);
    whole.add_version(message.version());
    whole.add_header_type(MessageHeader::RecordBatch);
    whole.add_header(header);
    whole.add_bodyLength(message.bodyLength());
    whole.add_custom_metadata(said);
    let whole = whole.finish();
    builder.finish(whole, None);
    Ok(EncodedData { ipc_message: builder.finished_data().to_vec(), arrow_data: encoded.arrow_data })
}

/// An Arrow stream or file being read.
#[derive(Debug)]
pub struct Reader<R> {
    source: R,
    schema: SchemaRef,
    dictionaries: HashMap<i64, ArrayRef>,
    fields: Arc<[Field]>,
    about: About,
    /// Rows of a batch not yet given.
    held: Option<RecordBatch>,
    rows: u64,
    is_over: bool,
}

/// A message: its metadata, a flatbuffer, and its body.
struct Framed {
    metadata: Vec<u8>,
    body: Buffer,
}

/// The signature of a file, filled up to eight bytes.
const FILE: &[u8; 8] = b"ARROW1\0\0";

/// Words of eight bytes between a file's signature and its schema, at most.
const FILE_PADDING_WORDS: usize = 16;

/// What stands before the length of a message's metadata.
const CONTINUATION: [u8; 4] = [0xff; 4];

impl<R: Read> Reader<R> {
    /// Reads the schema.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let mut reader = Self {
            source,
            schema: Arc::new(Schema::empty()),
            dictionaries: HashMap::new(),
            fields: Arc::from([]),
            about: About::default(),
            held: None,
            rows: 0,
            is_over: false,
        };
        let mut first = [0; 8];
        let mut length = reader.prefix(&mut first)?;
        // Behind a file's signature stand zeros, up to whatever its writer aligns to.
        let is_file = first == *FILE;
        for _ in 0..FILE_PADDING_WORDS {
            if is_file && length.is_none() {
                first = [0; 8];
                length = reader.prefix(&mut first)?;
            }
        }
        let Some(framed) = length.map(|length| reader.framed(length)).transpose()? else {
            return Err(ReadError::new(At::Document, Fault::Truncated("the schema")));
        };
        let schema = guarded(&At::Document, || {
            let message = root(&framed.metadata)?;
            let schema = message.header_as_schema();
            Ok(fb_to_schema(schema.ok_or_else(|| wrong("the first message is no schema"))?))
        })?;
        reader.describe(&schema)?;
        reader.schema = Arc::new(schema);
        Ok(reader)
    }

    /// The source, wherever it stands.
    pub fn into_source(self) -> R {
        self.source
    }

    fn describe(&mut self, schema: &Schema) -> Result<(), ReadError> {
        let fields = schema.fields().iter().map(|field| adopt::field(field));
        let fields: Result<Arc<[Field]>, _> = fields.collect();
        self.fields =
            fields.map_err(|unfit| ReadError::new(At::Document, Fault::Unsupported(unfit.to_string())))?;
        let mut said: Vec<_> = schema.metadata().iter().collect();
        said.sort();
        for (key, value) in said {
            match key.as_str() {
                "name" => self.about.name = Some(Arc::from(value.as_str())),
                "description" => self.about.description = Some(Arc::from(value.as_str())),
                key => self.about.infos.push(Info::new(key, value.as_str())),
            }
        }
        Ok(())
    }

    /// The length of the next message's metadata; nothing at the end of the batches, be it said or be it the
    /// source's.
    fn prefix(&mut self, first: &mut [u8; 8]) -> Result<Option<usize>, ReadError> {
        let mut read = 0;
        while read < first.len() {
            match self.source.read(&mut first[read..]) {
                Ok(0) if read == 0 || *first == [0; 8] => return Ok(None),
                Ok(0) => return Err(self.truncated()),
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(Fault::Io(error))),
            }
        }
        let [mark @ .., a, b, c, d] = *first;
        let length = u32::from_le_bytes([a, b, c, d]) as usize;
        match length {
            _ if *first == *FILE || *first == [0; 8] => Ok(None),
            _ if mark != CONTINUATION => {
                Err(self.failed(Fault::Malformed("this is no Arrow IPC".to_owned())))
            }
            0 => Ok(None),
            _ if length > IPC_METADATA_BYTES_MAX => {
                let limit = IPC_METADATA_BYTES_MAX as u64;
                Err(self.failed(Fault::Limit { what: "a message's metadata in bytes", limit }))
            }
            _ => Ok(Some(length)),
        }
    }

    /// A message whose metadata have this length.
    fn framed(&mut self, length: usize) -> Result<Framed, ReadError> {
        let metadata = self.bytes(length)?;
        let body = guarded(&self.at(), || Ok(root(&metadata)?.bodyLength()))?;
        match usize::try_from(body) {
            Ok(body) if body <= IPC_BODY_BYTES_MAX => {
                Ok(Framed { metadata, body: Buffer::from_vec(self.bytes(body)?) })
            }
            _ => {
                let limit = IPC_BODY_BYTES_MAX as u64;
                Err(self.failed(Fault::Limit { what: "a message in bytes", limit }))
            }
        }
    }

    /// So many bytes, taken as they come: a length that is a lie costs nothing.
    fn bytes(&mut self, count: usize) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        let read = self.source.by_ref().take(count as u64).read_to_end(&mut bytes);
        read.map_err(|error| self.failed(Fault::Io(error)))?;
        if bytes.len() < count { Err(self.truncated()) } else { Ok(bytes) }
    }

    fn truncated(&self) -> ReadError {
        self.failed(Fault::Truncated("a message"))
    }

    fn failed(&self, fault: Fault) -> ReadError {
        ReadError::new(self.at(), fault)
    }

    fn at(&self) -> At {
        if self.rows == 0 { At::Document } else { At::Row(self.rows + 1) }
    }

    /// The next batch with rows.
    fn pull(&mut self) -> Result<Option<RecordBatch>, ReadError> {
        while let Some(length) = self.prefix(&mut [0; 8])? {
            let framed = self.framed(length)?;
            let Self { schema, dictionaries, .. } = self;
            let batch = guarded(&At::Row(self.rows + 1), || decode(&framed, schema, dictionaries))?;
            match batch {
                Some(batch) if batch.num_rows() > i32::MAX as usize => {
                    return Err(self.failed(Fault::Limit { what: "rows of a batch", limit: i32::MAX as u64 }));
                }
                Some(batch) if batch.num_rows() > 0 => return Ok(Some(batch)),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// Runs the decoder. It was written for what its own writer makes, and panics on some malformed messages;
/// that is the document's fault and told as such.
fn guarded<T>(at: &At, decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ReadError> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(decoded)) => Ok(decoded),
        Ok(Err(error)) => Err(ReadError::malformed(at.clone(), error.to_string())),
        Err(_) => Err(ReadError::malformed(at.clone(), "a message that is no Arrow IPC")),
    }
}

fn wrong(message: &str) -> ArrowError {
    ArrowError::IpcError(message.to_owned())
}

fn root(metadata: &[u8]) -> Result<Message<'_>, ArrowError> {
    arrow_ipc::root_as_message(metadata).map_err(|error| ArrowError::IpcError(error.to_string()))
}

/// The batch of a message, or the dictionary, which is kept.
fn decode(
    framed: &Framed,
    schema: &SchemaRef,
    dictionaries: &mut HashMap<i64, ArrayRef>,
) -> Result<Option<RecordBatch>, ArrowError> {
    let message = root(&framed.metadata)?;
    let (body, version) = (&framed.body, message.version());
    if let Some(batch) = message.header_as_record_batch() {
        check(&batch, body)?;
        return read_record_batch(body, batch, schema.clone(), dictionaries, None, &version).map(Some);
    }
    if let Some(dictionary) = message.header_as_dictionary_batch() {
        check(&dictionary.data().ok_or_else(|| wrong("a dictionary without values"))?, body)?;
        read_dictionary(body, dictionary, schema, dictionaries, &version)?;
    }
    Ok(None)
}

/// What compressed buffers say that they will take: the decoder believes them.
fn check(batch: &arrow_ipc::RecordBatch<'_>, body: &Buffer) -> Result<(), ArrowError> {
    if batch.compression().is_none() {
        return Ok(());
    }
    let mut total = 0_u64;
    for buffer in batch.buffers().iter().flatten() {
        let start = usize::try_from(buffer.offset()).ok();
        let length = start.and_then(|start| body.get(start..)?.first_chunk());
        // Less than nothing means that the buffer is not compressed.
        let length = length.map_or(0, |length| i64::from_le_bytes(*length).max(0));
        total = total.saturating_add(length.unsigned_abs());
    }
    if total > IPC_BODY_BYTES_MAX as u64 {
        return Err(wrong("the buffers of a batch are larger than the limit when decompressed"));
    }
    Ok(())
}

impl<R: Read + Send> TableReader for Reader<R> {
    fn fields(&self) -> &Arc<[Field]> {
        &self.fields
    }

    fn next_batch(&mut self, max_rows: usize) -> Result<Option<RecordBatch>, ReadError> {
        if self.held.as_ref().is_none_or(|held| held.num_rows() == 0) {
            // After an error nothing is where it was thought to be.
            self.held = if std::mem::replace(&mut self.is_over, true) { None } else { self.pull()? };
            self.is_over = self.held.is_none();
        }
        let Some(held) = &mut self.held else { return Ok(None) };
        let count = held.num_rows().min(max_rows.max(1));
        let part = held.slice(0, count);
        *held = held.slice(count, held.num_rows() - count);
        let batch = adopt::batch(&self.fields, &part, self.rows)?;
        self.rows += count as u64;
        Ok(Some(batch))
    }

    fn about(&self) -> About {
        self.about.clone()
    }
}

/// Body of a fuzz target: whatever the bytes, they are read or refused.
pub fn fuzz(data: &[u8]) {
    let Ok(mut reader) = Reader::new(data) else { return };
    let mut left = 100_000;
    while let Ok(Some(batch)) = reader.next_batch(1000)
        && left > 0
    {
        left -= batch.num_rows().min(left);
    }
}

#[cfg(test)]
mod tests;
