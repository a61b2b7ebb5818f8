//! The conversation on one byte stream: bytes in, bytes out, nothing of sockets.
//!
//! ```text
//!  input -> frames -> greeting, then requests -+-> answered at once ---------------> output
//!                                              +-> acks, in the order of publishes ->
//!                                              +-> tasks: disk, waiting -----------> in any order, by their ids
//!                                  sources (subscriptions, watches) --- pushes ----> as far as credit and room reach
//! ```
//!
//! A frame that cannot be one ends the conversation with a typed error under id 0, because what follows it
//! cannot be trusted to begin a frame. A message that cannot be read within a good frame is refused under its
//! own id, and the conversation goes on.

mod caches;
mod greeting;
mod groups;
mod publish;
mod refusal;
mod serving;
mod sources;
mod streams;
mod tasks;

use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use bytes::BytesMut;
use trifid_stream_model::frame::{Code, Decoder, Frame, FrameError, Refusal, Reply, reply, request};

use self::serving::Serving;
use crate::account::Account;
use crate::core::Core;
use crate::limits::{FRAME_ALONE_BYTES, FRAME_BYTES_LEAST, READ_BEYOND_BYTES, RESERVED_AT_ONCE_BYTES};
use crate::link::{Appetite, Outbox};

/// How far the conversation has come.
enum Phase {
    /// The preface is waited for.
    Preface,
    /// The greeting is waited for.
    Hello { capabilities: trifid_stream_model::frame::Capabilities },
    /// Requests are answered.
    Serving(Box<Serving>),
    /// Nothing more is read; what is written still goes out.
    Over,
}

/// The conversation on one byte stream.
pub(crate) struct Session {
    core: Arc<Core>,
    worker: usize,
    account: Rc<Account>,
    decoder: Decoder,
    out: Output,
    phase: Phase,
    is_draining: bool,
    /// Room that the last large frame needed.
    usual_bytes: usize,
}

/// Where frames are written, and counted.
pub(crate) struct Output {
    pub(crate) outbox: Outbox,
    core: Arc<Core>,
    worker: usize,
    /// The largest body that the client takes.
    frame_bytes: usize,
}

impl Output {
    /// Queues a reply. One that the client does not take is refused in its place.
    pub(crate) fn reply(&mut self, id: u32, reply: impl Into<Reply>) {
        let mut pieces = reply.into().encode(id);
        if pieces.len() > self.frame_bytes {
            let code = Code::TooLarge { max: self.frame_bytes as u64 };
            let message = "the answer does not fit into the frames that the client takes";
            pieces = Reply::Error(Refusal::new(code, message)).encode(id);
        }
        self.core.stats.frames_out.add(self.worker, 1);
        pieces.iter().for_each(|piece| self.outbox.share(piece));
    }

    /// Queues a refusal, and counts it.
    pub(crate) fn refuse(&mut self, id: u32, refusal: Refusal) {
        self.core.stats.refused.add(self.worker, 1);
        self.reply(id, Reply::Error(refusal));
    }

    /// Queues bytes that are a frame.
    pub(crate) fn frame(&mut self, head: &[u8]) {
        self.core.stats.frames_out.add(self.worker, 1);
        self.outbox.encode(|open| open.extend_from_slice(head));
    }
}

/// Room for so many bytes of a frame, and for what is read beyond its end.
fn room_for(bytes: usize) -> usize {
    bytes + bytes / 256 + READ_BEYOND_BYTES
}

impl Session {
    pub(crate) fn new(core: Arc<Core>, worker: usize, account: Rc<Account>) -> Self {
        let out = Output {
            outbox: Outbox::default(),
            core: Arc::clone(&core),
            worker,
            frame_bytes: FRAME_BYTES_LEAST as usize,
        };
        Self {
            core,
            worker,
            account,
            decoder: Decoder::new(),
            out,
            phase: Phase::Preface,
            is_draining: false,
            usual_bytes: 0,
        }
    }

    /// Where the transport reads into.
    pub(crate) fn input(&mut self) -> &mut BytesMut {
        self.decoder.buffer()
    }

    /// How much there is to read, as far as it is known.
    pub(crate) fn appetite(&self) -> Appetite {
        let (missing, here) = (self.decoder.missing(), self.decoder.buffered());
        // Small frames are better read by the dozen than one by one.
        let is_large = missing + here >= FRAME_ALONE_BYTES;
        Appetite { missing: if is_large { missing } else { 0 }, usual: self.usual_bytes }
    }

    /// What waits to be written.
    pub(crate) fn output(&mut self) -> &mut Outbox {
        &mut self.out.outbox
    }

    /// So many bytes were written.
    pub(crate) fn sent(&mut self, bytes: usize) {
        self.core.stats.bytes_out.add(self.worker, bytes as u64);
    }

    /// Whether there is room for what reading leads to.
    pub(crate) fn wants_input(&self) -> bool {
        match &self.phase {
            // Thrown away, so that the peer can finish writing.
            Phase::Over => true,
            Phase::Serving(serving) => {
                self.out.outbox.len() < self.core.limits.send_bytes && serving.has_room()
            }
            Phase::Preface | Phase::Hello { .. } => true,
        }
    }

    /// Whether the client has introduced itself, or cannot any more.
    pub(crate) fn is_greeted(&self) -> bool {
        matches!(self.phase, Phase::Serving(_) | Phase::Over)
    }

    /// Whether everything was answered that will be, and nothing more is to come.
    pub(crate) fn is_done(&self) -> bool {
        match &self.phase {
            Phase::Over => true,
            Phase::Serving(serving) => serving.is_leaving() && serving.is_idle(),
            Phase::Preface | Phase::Hello { .. } => self.is_draining,
        }
    }

    /// So many bytes have come in.
    pub(crate) fn received(&mut self, bytes: usize) {
        self.core.stats.bytes_in.add(self.worker, bytes as u64);
        self.check_token();
        if let Err(error) = self.take_frames() {
            self.break_off(&error);
        }
    }

    fn take_frames(&mut self) -> Result<(), FrameError> {
        if matches!(self.phase, Phase::Preface) {
            let Some(preface) = self.decoder.preface()? else { return Ok(()) };
            self.meet(preface);
        }
        while !matches!(self.phase, Phase::Over) {
            let Some(frame) = self.decoder.next_frame()? else { break };
            self.set_alone(&frame);
            self.core.stats.frames_in.add(self.worker, 1);
            self.take_frame(frame);
        }
        if matches!(self.phase, Phase::Over) {
            self.decoder.buffer().clear();
        }
        if let Phase::Serving(serving) = &mut self.phase {
            serving.tell_shed(&mut self.out);
        }
        self.make_room();
        Ok(())
    }

    /// A large frame gets its buffer for itself: its batch is then kept, and given its offset, where it lies.
    /// What has come of the next frame moves elsewhere; the transport reads about as much as is missing, so
    /// that is little.
    fn set_alone(&mut self, frame: &Frame) {
        let bytes = frame.body.len();
        if frame.kind == request::kind::PUBLISH && bytes < FRAME_ALONE_BYTES {
            self.usual_bytes = 0;
        }
        if bytes >= FRAME_ALONE_BYTES {
            let rest = std::mem::take(self.decoder.buffer());
            self.usual_bytes = room_for(bytes).min(RESERVED_AT_ONCE_BYTES);
            if !rest.is_empty() {
                self.decoder.buffer().reserve(self.usual_bytes.max(rest.len()));
                self.decoder.buffer().extend_from_slice(&rest);
            }
        }
    }

    /// Room for the rest of a frame that has begun, at once: growing step by step would copy what is there
    /// again and again. The length of a very large frame does not get its memory, a part of the frame does.
    /// Without a frame the buffer is given back.
    fn make_room(&mut self) {
        let (missing, here) = (self.decoder.missing(), self.decoder.buffered());
        let buffer = self.decoder.buffer();
        if missing == 0 && here == 0 {
            *buffer = BytesMut::new();
        } else if missing <= RESERVED_AT_ONCE_BYTES || here >= missing / 4 {
            // Transports read a little beyond what is missing. Growing for that would copy all of it, and
            // leave twice the room: then the batch could not be kept where it lies.
            buffer.reserve(room_for(missing));
        }
    }

    fn take_frame(&mut self, frame: Frame) {
        match &mut self.phase {
            Phase::Hello { capabilities } => {
                let capabilities = *capabilities;
                self.greet(capabilities, &frame);
            }
            Phase::Serving(serving) => serving.take(frame, &mut self.out),
            // No frame is asked for before the preface, or after the end.
            Phase::Preface | Phase::Over => {}
        }
    }

    /// What came is no frame: says so, and ends.
    fn break_off(&mut self, error: &FrameError) {
        self.core.stats.malformed.add(self.worker, 1);
        // Whoever does not even know the preface would not understand an answer.
        if !matches!(self.phase, Phase::Preface) {
            self.out.refuse(0, refusal::of_frame(error));
        }
        self.phase = Phase::Over;
        self.decoder.buffer().clear();
    }

    /// Settles what has been answered, and pushes; answers whether anything was written.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> bool {
        let before = self.out.outbox.len();
        self.check_token();
        if let Phase::Serving(serving) = &mut self.phase {
            serving.poll(cx, &mut self.out);
        }
        self.out.outbox.len() != before
    }

    /// Whoever was let in with a token that is no longer known is sent away.
    fn check_token(&mut self) {
        if let Phase::Serving(serving) = &mut self.phase
            && let Err(refusal) = serving.check_token()
        {
            self.out.refuse(0, refusal);
            self.phase = Phase::Over;
        }
    }

    /// The peer sends nothing more: what is in flight is answered.
    pub(crate) fn leave(&mut self) {
        match &mut self.phase {
            Phase::Serving(serving) => serving.leave(),
            Phase::Preface | Phase::Hello { .. } | Phase::Over => self.phase = Phase::Over,
        }
    }

    /// The broker is going away: says so, and finishes what is in flight.
    pub(crate) fn drain(&mut self) {
        self.is_draining = true;
        if let Phase::Serving(serving) = &mut self.phase {
            let drain_ms = u32::try_from(self.core.limits.drain_timeout.as_millis()).unwrap_or(u32::MAX);
            self.out.reply(0, reply::Goaway { drain_ms, message: "the broker is shutting down".to_owned() });
            serving.leave();
        } else {
            self.phase = Phase::Over;
        }
    }

    /// Ends with a refusal of the conversation itself.
    fn end_with(&mut self, id: u32, code: Code, message: &str) {
        self.out.refuse(id, Refusal::new(code, message));
        self.phase = Phase::Over;
    }
}
