//! Content codings: which one a client takes, and bodies in it (RFC 9110 8.4.1 and 12.5.3, RFC 8878).
//!
//! zstd comes before gzip where the client likes both alike: it costs a fifth of the time. A stream is flushed where
//! its producer would otherwise wait, so that rows do not linger in a compressor; both compressors keep well below
//! a mebibyte or two.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::ACCEPT_ENCODING;
use http::{HeaderMap, HeaderValue};

use crate::limits::PREFERENCES_MAX;

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    /// zstd.
    Zstd,
    /// gzip.
    Gzip,
}

/// zstd's level: the one that is faster than everything else around it.
const ZSTD_LEVEL: i32 = 1;

impl Coding {
    /// Its name as `Content-Encoding` has it.
    pub(crate) fn header(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        })
    }

    /// The coding that the client likes most, if it likes any as much as the bare body.
    pub(crate) fn accepted(headers: &HeaderMap) -> Option<Self> {
        let mut best: (u16, Option<Self>) = (0, None);
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for item in values.flat_map(|value| value.split(',')).take(PREFERENCES_MAX) {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let coding = match name.trim() {
                name if name.eq_ignore_ascii_case("zstd") => Self::Zstd,
                name if name.eq_ignore_ascii_case("gzip") || name.eq_ignore_ascii_case("x-gzip") => {
                    Self::Gzip
                }
                _ => continue,
            };
            let weight = weight(parameters);
            let is_better = weight > best.0 || (weight == best.0 && coding == Self::Zstd);
            if weight > 0 && is_better {
                best = (weight, Some(coding));
            }
        }
        best.1
    }

    /// A whole body in this coding.
    pub(crate) fn encode(self, body: &[u8]) -> io::Result<Vec<u8>> {
        let mut encoder = Encoder::new(self)?;
        encoder.write(body)?;
        encoder.finish()
    }
}

/// The parameter `q` in thousandths; one that is malformed is none at all.
fn weight(parameters: &str) -> u16 {
    let value = parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim().eq_ignore_ascii_case("q").then_some(value.trim())
    });
    let Some(weight) = value.and_then(|value| value.parse::<f32>().ok()) else { return 1000 };
    if (0.0..=1.0).contains(&weight) { (weight * 1000.0) as u16 } else { 1000 }
}

/// A body that is encoded while it is made.
pub(crate) struct Encoder(Inner);

enum Inner {
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    Gzip(Box<GzEncoder<Vec<u8>>>),
}

impl Encoder {
    /// A body in this coding, nothing of it written.
    pub(crate) fn new(coding: Coding) -> io::Result<Self> {
        Ok(Self(match coding {
            Coding::Zstd => Inner::Zstd(Box::new(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)),
            Coding::Gzip => Inner::Gzip(Box::new(GzEncoder::new(Vec::new(), Compression::fast()))),
        }))
    }

    /// Adds to the body.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Inner::Zstd(encoder) => encoder.write_all(bytes),
            Inner::Gzip(encoder) => encoder.write_all(bytes),
        }
    }

    /// Takes what is encoded so far, all that was written included.
    pub(crate) fn flush(&mut self) -> io::Result<Vec<u8>> {
        Ok(match &mut self.0 {
            Inner::Zstd(encoder) => {
                encoder.flush()?;
                std::mem::take(encoder.get_mut())
            }
            Inner::Gzip(encoder) => {
                encoder.flush()?;
                std::mem::take(encoder.get_mut())
            }
        })
    }

    /// Takes what is encoded so far and not yet taken, without forcing anything out.
    pub(crate) fn ready(&mut self) -> Vec<u8> {
        match &mut self.0 {
            Inner::Zstd(encoder) => std::mem::take(encoder.get_mut()),
            Inner::Gzip(encoder) => std::mem::take(encoder.get_mut()),
        }
    }

    /// Ends the body and takes the rest of it.
    pub(crate) fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Inner::Zstd(encoder) => encoder.finish(),
            Inner::Gzip(encoder) => encoder.finish(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;

    use super::*;

    fn decode(coding: Coding, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match coding {
            Coding::Zstd => zstd::stream::read::Decoder::new(body).unwrap().read_to_end(&mut out).unwrap(),
            Coding::Gzip => flate2::read::GzDecoder::new(body).read_to_end(&mut out).unwrap(),
        };
        out
    }

    #[test]
    fn the_client_decides() {
        for (accept, expected) in [
            (&[][..], None),
            (&["identity"], None),
            (&["gzip, deflate"], Some(Coding::Gzip)),
            (&["gzip, deflate, br, zstd"], Some(Coding::Zstd)),
            (&["gzip", "zstd"], Some(Coding::Zstd)),
            (&["gzip;q=1.0, zstd;q=0.5"], Some(Coding::Gzip)),
            (&["GZIP;Q=0"], None),
            (&["zstd;q=0, gzip;q=0.1"], Some(Coding::Gzip)),
            (&["*"], None),
            (&["x-gzip;q=x"], Some(Coding::Gzip)),
            (&["gzip;q=nan"], Some(Coding::Gzip)),
        ] {
            let headers: HeaderMap =
                accept.iter().map(|value| (ACCEPT_ENCODING, HeaderValue::from_static(value))).collect();
            assert_eq!(Coding::accepted(&headers), expected, "{accept:?}");
        }
    }

    #[test]
    fn what_is_flushed_can_be_read_at_once() {
        for coding in [Coding::Zstd, Coding::Gzip] {
            let mut encoder = Encoder::new(coding).unwrap();
            encoder.write(b"first").unwrap();
            let first = encoder.flush().unwrap();
            let mut out = [0; 5];
            match coding {
                Coding::Zstd => {
                    zstd::stream::read::Decoder::new(&*first).unwrap().read_exact(&mut out).unwrap();
                }
                Coding::Gzip => flate2::read::GzDecoder::new(&*first).read_exact(&mut out).unwrap(),
            }
            assert_eq!(&out, b"first");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn pieces_decode_to_the_whole(
            pieces in proptest::collection::vec((proptest::collection::vec(any::<u8>(), 0..200), any::<bool>()), 0..8),
        ) {
            let whole: Vec<u8> = pieces.iter().flat_map(|(piece, _)| piece.clone()).collect();
            for coding in [Coding::Zstd, Coding::Gzip] {
                let mut encoder = Encoder::new(coding).unwrap();
                let mut body = Vec::new();
                for (piece, flush) in &pieces {
                    encoder.write(piece).unwrap();
                    body.extend(if *flush { encoder.flush().unwrap() } else { encoder.ready() });
                }
                body.extend(encoder.finish().unwrap());
                prop_assert_eq!(decode(coding, &body), whole.clone());
                prop_assert_eq!(decode(coding, &coding.encode(&whole).unwrap()), whole.clone());
            }
        }

        #[test]
        fn any_header_is_answered(accept in "[ -~]{0,40}") {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_str(&accept).unwrap())]);
            let _ = Coding::accepted(&headers);
        }
    }
}
