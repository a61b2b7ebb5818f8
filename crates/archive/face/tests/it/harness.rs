//! An archive door over a few tables in memory: requests are values, answers are collected.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float32Array, Float64Array, Int64Array, StringArray};
use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use http_body_util::BodyExt as _;
use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use trifid_archive_adql::types::{Field, Type};
use trifid_archive_engine::archive::Archive;
use trifid_archive_engine::catalogue::{ColumnInfo, Published, SchemaInfo, TableInfo};
use trifid_archive_engine::compute::{Compute, Size};
use trifid_archive_engine::jobs::Limits;
use trifid_archive_engine::metadata::position;
use trifid_archive_engine::reference::Interpreter;
use trifid_archive_engine::table::{Table, TableHead};
use trifid_archive_engine::tap_schema::with_tap_schema;
use trifid_archive_face::{ArchiveFace, Options, Ports};
use trifid_archive_model::batch;
use trifid_base_runtime::{ManualClock, Timestamp};
use trifid_base_web::{Face, Request, egress};

/// Rows of `demo.many`: more than fits into what waits for one client.
pub(crate) const MANY: i64 = 80_000;

/// A door and what it stands on.
pub(crate) struct Door {
    pub(crate) face: Arc<ArchiveFace>,
    pub(crate) archive: Arc<Archive>,
    _spool: tempfile::TempDir,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) trailers: HeaderMap,
    pub(crate) bytes: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap()
    }

    /// The XML document, which must be well-formed.
    pub(crate) fn xml(&self) -> Xml {
        Xml::read(self.text())
    }

    /// What QUERY_STATUS says, first to last.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let infos = self.xml().all("INFO");
        let status =
            |info: &Element| (info.get("name") == "QUERY_STATUS").then(|| info.get("value").to_owned());
        infos.iter().filter_map(status).collect()
    }
}

/// An element of an XML document: its local name, its attributes, its own text, where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(crate) path: String,
    pub(crate) attributes: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Element {
    pub(crate) fn get(&self, name: &str) -> &str {
        self.attributes.iter().find(|(found, _)| found == name).map_or("", |(_, value)| value)
    }
}

/// The elements of an XML document, in order.
#[derive(Debug)]
pub(crate) struct Xml(pub(crate) Vec<Element>);

impl Xml {
    pub(crate) fn read(text: &str) -> Self {
        let mut reader = quick_xml::Reader::from_str(text);
        let (mut elements, mut open): (Vec<Element>, Vec<usize>) = (Vec::new(), Vec::new());
        loop {
            match reader.read_event().unwrap_or_else(|error| panic!("{error}: {text}")) {
                Event::Start(start) => {
                    elements.push(element(&start, &open, &elements));
                    open.push(elements.len() - 1);
                }
                Event::Empty(start) => elements.push(element(&start, &open, &elements)),
                Event::End(_) => drop(open.pop().unwrap()),
                Event::Text(found) => add(&mut elements, &open, &found.xml_content(XmlVersion::Explicit1_0)),
                Event::GeneralRef(found) => {
                    let name = found.xml_content(XmlVersion::Explicit1_0);
                    let meant = quick_xml::escape::unescape(&format!("&{name};")).unwrap().into_owned();
                    add(&mut elements, &open, &meant);
                }
                Event::Eof => break,
                _ => {}
            }
        }
        assert!(open.is_empty(), "the document ends inside an element");
        Self(elements)
    }

    /// The elements with this name.
    pub(crate) fn all(&self, name: &str) -> Vec<Element> {
        let is_it = |element: &&Element| element.path.rsplit('/').next() == Some(name);
        self.0.iter().filter(is_it).cloned().collect()
    }

    /// The texts of the elements with this name.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.all(name).into_iter().map(|element| element.text).collect()
    }
}

fn element(start: &BytesStart<'_>, open: &[usize], elements: &[Element]) -> Element {
    let local = start.local_name().as_ref().to_owned();
    let above = open.last().map_or("", |at| &elements[*at].path);
    let attributes = start.attributes().map(|attribute| {
        let attribute = attribute.unwrap();
        let name = attribute.key.as_ref().to_owned();
        (name, attribute.normalized_value(XmlVersion::Explicit1_0).unwrap().into_owned())
    });
    Element { path: format!("{above}/{local}"), attributes: attributes.collect(), text: String::new() }
}

fn add(elements: &mut [Element], open: &[usize], text: &str) {
    if let Some(at) = open.last() {
        elements[*at].text += text;
    }
}

fn described(name: &str, ty: Type, unit: &str, ucd: &str) -> Field {
    let some = |text: &str| (!text.is_empty()).then(|| Arc::from(text));
    Field { unit: some(unit), ucd: some(ucd), ..Field::new(name, ty) }
}

fn published(name: &str, fields: Vec<Field>, columns: Vec<ArrayRef>, description: &str) -> Arc<Published> {
    let rows = columns[0].len();
    let batch = batch::batch(&fields, columns, rows).unwrap();
    let head = TableHead {
        schema: "demo".into(),
        name: name.into(),
        position: position(&fields),
        fields: fields.into(),
    };
    let info = TableInfo {
        description: Some(description.into()),
        columns: (0..head.fields.len())
            .map(|at| ColumnInfo { principal: at < 4, indexed: at == 0, ..ColumnInfo::default() })
            .collect(),
        ..TableInfo::default()
    };
    Arc::new(Published { table: Arc::new(Table::in_memory(head, &[batch], &[0]).unwrap()), info })
}

fn stars() -> Arc<Published> {
    let fields = vec![
        described("id", Type::Long, "", "meta.id;meta.main"),
        described("ra", Type::Double, "deg", "pos.eq.ra;meta.main"),
        described("dec", Type::Double, "deg", "pos.eq.dec;meta.main"),
        described("mag", Type::Float, "mag", "phot.mag"),
        described("name", Type::Text, "", "meta.id"),
    ];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5])),
        Arc::new(Float64Array::from(vec![10.0, 10.1, 10.2, 200.0, 300.5])),
        Arc::new(Float64Array::from(vec![-5.0, -5.1, -5.2, 45.0, 89.5])),
        Arc::new(Float32Array::from(vec![Some(1.5), None, Some(f32::NAN), Some(4.25), Some(-1.0)])),
        Arc::new(StringArray::from(vec![Some("a"), Some("<b>, \"c\""), None, Some("é"), Some("")])),
    ];
    published("stars", fields, columns, "A few <stars> & more")
}

fn many() -> Arc<Published> {
    let fields = vec![Field::new("n", Type::Long), Field::new("x", Type::Double)];
    let columns: Vec<ArrayRef> = vec![
        Arc::new((0..MANY).collect::<Int64Array>()),
        Arc::new((0..MANY).map(|n| n as f64 / 8.0).collect::<Float64Array>()),
    ];
    published("many", fields, columns, "Numbers")
}

/// A table whose names need quotes.
fn odd() -> Arc<Published> {
    let fields = vec![Field::new("odd column", Type::Long), Field::new("<script>", Type::Text)];
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![1])),
        Arc::new(StringArray::from(vec!["<script>alert(1)</script>"])),
    ];
    published("I/355/odd", fields, columns, "Odd names")
}

impl Door {
    pub(crate) fn new() -> Self {
        Self::with(|_| ())
    }

    /// A door with other options.
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::default();
        change(&mut options);
        Self::fetching(options, &egress::Options::default())
    }

    /// A door that fetches from elsewhere so.
    pub(crate) fn fetching(options: Options, egress: &egress::Options) -> Self {
        let schema = SchemaInfo {
            name: "demo".into(),
            description: Some("Shown & tried".into()),
            ..SchemaInfo::default()
        };
        let snapshot = with_tap_schema(7, vec![schema], vec![stars(), many(), odd()]).unwrap();
        let compute = Arc::new(Compute::start(Size { threads: 2, running: 2, waiting: 4 }).unwrap());
        let archive = Arc::new(Archive::new(snapshot, Arc::new(Interpreter::default()), compute, 100));
        let spool = tempfile::tempdir().unwrap();
        let ports = Ports {
            // 2026-01-01T00:00:00Z
            clock: Arc::new(ManualClock::new(Timestamp::from_micros(1_767_225_600_000_000))),
            client: Some(egress::Client::new(egress).unwrap()),
            spool: spool.path().join("spool"),
            formats: Vec::new(),
            examples: Vec::new(),
            cores: 1,
            jobs: Limits::default(),
        };
        let face = Arc::new(ArchiveFace::new(Arc::clone(&archive), options.resolve(false).unwrap(), ports));
        Self { face, archive, _spool: spool }
    }

    /// Sends a request whose path is below the root.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Answer {
        let mut request = Request::new(method, format!("/tap{path}").parse().unwrap());
        request.headers.insert(HOST, HeaderValue::from_static("archive.example:9090"));
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
            request.headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        request.body = body.into();
        let response = self.face.call(request).await;
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            trailers: body.trailers().cloned().unwrap_or_default(),
            bytes: body.to_bytes(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], "").await
    }

    /// Runs a query by GET; `rest` is further parameters, as they stand in a URL.
    pub(crate) async fn query(&self, query: &str, rest: &str) -> Answer {
        self.get(&format!("/sync?LANG=ADQL&QUERY={}&{rest}", encoded(query))).await
    }

    /// Runs a query and answers its CSV without the header.
    pub(crate) async fn csv(&self, query: &str) -> String {
        let answer = self.query(query, "RESPONSEFORMAT=csv").await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text());
        answer.text().split_once('\n').unwrap().1.to_owned()
    }

    pub(crate) async fn coded(&self, query: &str, rest: &str, coding: &str) -> Answer {
        let path = format!("/sync?QUERY={}&{rest}", encoded(query));
        self.send(Method::GET, &path, &[(ACCEPT_ENCODING.as_str(), coding)], "").await
    }

    pub(crate) async fn post(&self, path: &str, media: &str, body: impl Into<Bytes>) -> Answer {
        self.send(Method::POST, path, &[(CONTENT_TYPE.as_str(), media)], body).await
    }
}

/// Text as it stands in a URL.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}
