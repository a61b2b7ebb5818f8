//! Pre-encoded requests.
//!
//! All bytes of a request exist before the first one is sent; the loop only copies them. Where each request
//! must be its own (a create needs a new id), a template has slots of twelve characters that receive a
//! running number: twelve bytes written, nothing formatted, lengths unchanged.

use memchr::memmem;

/// What stands in a template where the running number goes.
pub(crate) const SLOT: &str = "@@@@@@@@@@@@";

/// What the answer to a request must be. Anything else ends the measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Expect {
    /// The status code.
    pub(crate) status: u16,
    /// The length of the body, where it is known.
    pub(crate) body_bytes: Option<u64>,
    /// The body itself, where it is known and is to be compared.
    pub(crate) body: Option<Box<[u8]>>,
    /// Whether the server may say instead that it has enough to do, and when to come again.
    pub(crate) may_be_busy: bool,
}

impl Expect {
    /// Only the status is known.
    pub(crate) fn status(status: u16) -> Expect {
        Expect { status, body_bytes: None, body: None, may_be_busy: false }
    }
}

/// A request ready to be sent.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    bytes: Box<[u8]>,
    slots: Box<[usize]>,
    pub(crate) expect: Expect,
}

impl Template {
    /// Encodes a request. `body` is sent as `application/json`.
    pub(crate) fn new(
        method: &str,
        host: &str,
        target: &str,
        body: Option<&str>,
        expect: Expect,
    ) -> Template {
        let head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n");
        Template::encoded(head, body.map(|body| ("application/json", body)), expect)
    }

    /// Encodes a POST of a form, as a browser or a client of an archive sends it.
    pub(crate) fn form(host: &str, target: &str, fields: &[(&str, &str)], expect: Expect) -> Template {
        let head = format!("POST {target} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\n");
        let pairs: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", percent(value))).collect();
        Template::encoded(head, Some(("application/x-www-form-urlencoded", &pairs.join("&"))), expect)
    }

    fn encoded(mut text: String, body: Option<(&str, &str)>, expect: Expect) -> Template {
        if let Some((media, body)) = body {
            text.push_str(&format!("Content-Type: {media}\r\nContent-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        text.push_str(body.map_or("", |(_, body)| body));
        let slots = memmem::find_iter(text.as_bytes(), SLOT).collect();
        Template { bytes: text.into_bytes().into_boxed_slice(), slots, expect }
    }

    /// Appends the request that carries this running number.
    pub(crate) fn write(&self, serial: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        if self.slots.is_empty() {
            return;
        }
        let digits = serial_digits(serial);
        for slot in &self.slots {
            out[start + slot..start + slot + SLOT.len()].copy_from_slice(&digits);
        }
    }
}

/// A value as it stands in a form (URL Standard 5.2).
fn percent(value: &str) -> String {
    let mut out = String::with_capacity(value.len() * 2);
    for byte in value.bytes() {
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'*' | b'-' | b'.' | b'_' => out.push(char::from(byte)),
            b' ' => out.push('+'),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The running number as it stands in a request.
pub(crate) fn serial_digits(mut serial: u64) -> [u8; SLOT.len()] {
    let mut digits = [b'0'; SLOT.len()];
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(serial % 10).expect("a number below ten");
        serial /= 10;
    }
    digits
}

/// The requests of a shape, in turn, for ever.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    templates: Vec<Template>,
    turn: usize,
    serial: u64,
}

impl Requests {
    /// Takes at least one template.
    pub(crate) fn new(templates: Vec<Template>) -> Requests {
        assert!(!templates.is_empty(), "a shape has at least one request");
        Requests { templates, turn: 0, serial: 0 }
    }

    /// Writes the next request and answers which template it was.
    pub(crate) fn next(&mut self, out: &mut Vec<u8>) -> usize {
        let index = self.turn;
        self.templates[index].write(self.serial, out);
        self.serial += 1;
        self.turn += 1;
        if self.turn == self.templates.len() {
            self.turn = 0;
        }
        index
    }

    /// What the answer to a template must be.
    pub(crate) fn expect(&self, index: usize) -> &Expect {
        &self.templates[index].expect
    }

    /// The templates, to learn what their answers are.
    pub(crate) fn templates_mut(&mut self) -> &mut [Template] {
        &mut self.templates
    }

    /// The running number of the next request.
    pub(crate) fn serial(&self) -> u64 {
        self.serial
    }

    /// Continues the running number elsewhere, so that two runs do not create the same things.
    pub(crate) fn start_at(&mut self, serial: u64) {
        self.serial = serial;
    }

    /// The same requests to a server that gives this answer to all of them.
    pub(crate) fn expecting(mut self, fixed: &crate::floor::Fixed) -> Requests {
        let body = fixed.body.as_bytes();
        for template in &mut self.templates {
            let (body_bytes, body) = (Some(body.len() as u64), Some(body.into()));
            template.expect = Expect { body_bytes, body, ..Expect::status(fixed.status) };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(template: &Template, serial: u64) -> String {
        let mut out = b"before".to_vec();
        template.write(serial, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_get_has_no_body_and_no_length() {
        let template = Template::new("GET", "h:1", "/x?a=b", None, Expect::status(200));
        assert_eq!(
            written(&template, 7),
            "beforeGET /x?a=b HTTP/1.1\r\nHost: h:1\r\nAccept: application/json\r\n\r\n"
        );
    }

    #[test]
    fn a_form_is_encoded() {
        let fields = [("LANG", "ADQL"), ("QUERY", "SELECT a+1 FROM \"b\" WHERE c='é'")];
        let template = Template::form("h:1", "/tap/sync", &fields, Expect::status(200));
        let body = "LANG=ADQL&QUERY=SELECT+a%2B1+FROM+%22b%22+WHERE+c%3D%27%C3%A9%27";
        let head = "POST /tap/sync HTTP/1.1\r\nHost: h:1\r\nAccept: */*\r\n\
            Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ";
        assert_eq!(written(&template, 0), format!("before{head}{}\r\n\r\n{body}", body.len()));
    }

    #[test]
    fn every_slot_receives_the_number_and_the_length_stays() {
        let body = format!("{{\"id\":\"{SLOT}\",\"also\":\"{SLOT}\"}}");
        let template = Template::new("POST", "h", &format!("/{SLOT}"), Some(&body), Expect::status(201));
        let text = written(&template, 4711);
        assert!(text.contains("POST /000000004711 HTTP/1.1\r\n"));
        assert!(text.ends_with("\r\n\r\n{\"id\":\"000000004711\",\"also\":\"000000004711\"}"));
        assert!(text.contains(&format!("Content-Length: {}\r\n", body.len())));
        assert!(!text.contains('@'));
    }

    #[test]
    fn requests_take_turns_and_count_on() {
        let templates = ["/a", "/b"].map(|path| Template::new("GET", "h", path, None, Expect::status(200)));
        let mut requests = Requests::new(templates.to_vec());
        requests.start_at(5);
        let mut out = Vec::new();
        let turns: Vec<usize> = (0..5).map(|_| requests.next(&mut out)).collect();
        assert_eq!(turns, [0, 1, 0, 1, 0]);
        assert_eq!(requests.serial(), 10);
    }

    #[test]
    fn numbers_keep_twelve_digits() {
        assert_eq!(&serial_digits(0), b"000000000000");
        assert_eq!(&serial_digits(999_999_999_999), b"999999999999");
    }
}
