//! One byte stream to the broker: requests out, replies and pushes in.
//!
//! Two tasks serve it. The writer takes everything that has been queued since it last looked, so that
//! requests of many callers leave in one write; the reader gives each reply to who waits for it, by its
//! number, and each push to the subscription that it belongs to. When the stream ends, for whatever reason,
//! everybody who waits is told at once; a line is never mended, its owner asks the pool for another.

use std::collections::HashMap;
use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::MissedTickBehavior;
use trifid_stream_model::frame::{
    Ack, Capabilities, Decoder, Frame, Preface, Refusal, Reply, Request, publish_head, reply, request,
};
use trifid_stream_model::limits::{FRAME_BYTES_DEFAULT, FRAME_BYTES_MAX};
use trifid_stream_model::names::{CacheName, StreamName};

use crate::error::{ConnectError, RequestError};
use crate::inlet::{Inlet, Push};
use crate::limits::{END_GRACE, OPEN_BYTES, READ_BYTES, SHARED_BYTES_LEAST, SLICES_MAX};
use crate::options::ClientOptions;
use crate::transport::{Reader, Writer};

/// A reply, or the refusal in its place.
pub(crate) type Answer = Result<Reply, Refusal>;

/// One byte stream to the broker.
#[derive(Debug)]
pub(crate) struct Line {
    state: Mutex<State>,
    /// Something was queued, or the line is over.
    queued: Notify,
    /// Something was written, or the line is over.
    written: Notify,
    /// How far the line is from its end.
    course: watch::Sender<Course>,
    pub(crate) welcome: reply::Welcome,
    /// Handles that this line was given.
    streams: Mutex<HashMap<StreamName, reply::Opened>>,
    caches: Mutex<HashMap<CacheName, u32>>,
}

#[derive(Debug, Default)]
struct State {
    closed: Vec<Bytes>,
    open: BytesMut,
    next_id: u32,
    waiting: HashMap<u32, oneshot::Sender<Answer>>,
    inlets: HashMap<u32, Arc<Inlet>>,
    /// Bytes that were queued, and those of them that were written, since the beginning.
    queued_bytes: u64,
    written_bytes: u64,
    is_over: bool,
    /// The broker is going away: what is under way is answered, nothing new is begun here.
    is_leaving: bool,
}

impl State {
    fn id(&mut self) -> u32 {
        // Zero belongs to the connection itself; a number that is still in use is passed over.
        loop {
            self.next_id = self.next_id.wrapping_add(1);
            let id = self.next_id;
            if id != 0 && !self.waiting.contains_key(&id) && !self.inlets.contains_key(&id) {
                return id;
            }
        }
    }

    fn put(&mut self, piece: &Bytes) {
        self.queued_bytes += piece.len() as u64;
        if piece.len() < SHARED_BYTES_LEAST {
            self.open.extend_from_slice(piece);
        } else {
            self.close();
            self.closed.push(piece.clone());
        }
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push(self.open.split().freeze());
            self.open.reserve(OPEN_BYTES);
        }
    }
}

/// How far a line is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Course {
    Open,
    /// Nothing new is taken; what was queued is still written.
    Ending,
    /// The broker says no more: it has read, and answered, all that it will.
    Silent,
    /// It is over.
    Ended,
}

/// An answer that is on its way.
pub(crate) type Waiting = oneshot::Receiver<Answer>;

impl Line {
    /// Greets the broker over a fresh byte stream, and starts the two tasks.
    pub(crate) async fn open(
        (mut reader, mut writer): (Reader, Writer),
        options: &ClientOptions,
    ) -> Result<Arc<Self>, ConnectError> {
        let greeting = greet(&mut reader, &mut writer, options);
        let limit = options.connect_timeout;
        let (decoder, welcome) =
            tokio::time::timeout(limit, greeting).await.unwrap_or(Err(ConnectError::Timeout(limit)))?;
        let line = Arc::new(Self {
            state: Mutex::default(),
            queued: Notify::new(),
            written: Notify::new(),
            course: watch::Sender::new(Course::Open),
            welcome,
            streams: Mutex::default(),
            caches: Mutex::default(),
        });
        tokio::spawn(Arc::clone(&line).read(reader, decoder));
        tokio::spawn(Arc::clone(&line).write(writer));
        Ok(line)
    }

    /// Whether new requests can be made here.
    pub(crate) fn is_open(&self) -> bool {
        let state = self.state.lock();
        !state.is_over && !state.is_leaving
    }

    /// Queues a request.
    pub(crate) fn send(&self, request: &Request) -> Result<Waiting, RequestError> {
        let (sender, waiting) = oneshot::channel();
        let mut state = self.state.lock();
        if state.is_over {
            return Err(RequestError::Lost);
        }
        let id = state.id();
        request.encode(id).iter().for_each(|piece| state.put(piece));
        state.waiting.insert(id, sender);
        drop(state);
        self.queued.notify_one();
        Ok(waiting)
    }

    /// Queues a request and waits for its answer.
    pub(crate) async fn ask(&self, request: &Request, limit: Duration) -> Result<Reply, RequestError> {
        let waiting = self.send(request)?;
        match tokio::time::timeout(limit, waiting).await {
            Ok(Ok(answer)) => Ok(answer?),
            Ok(Err(_)) => Err(RequestError::Lost),
            Err(_) => Err(RequestError::Timeout(limit)),
        }
    }

    /// Queues a batch. Without acknowledgement there is nothing to wait for.
    pub(crate) fn publish(
        &self,
        handle: u32,
        shard: u32,
        ack: Ack,
        batch: &Bytes,
    ) -> Result<Option<Waiting>, RequestError> {
        let (sender, waiting) = oneshot::channel();
        let mut state = self.state.lock();
        if state.is_over {
            return Err(RequestError::Lost);
        }
        let id = state.id();
        let head = publish_head(id, handle, shard, 0, ack, batch.len());
        state.open.extend_from_slice(&head);
        state.queued_bytes += head.len() as u64;
        state.put(batch);
        if ack == Ack::One {
            state.waiting.insert(id, sender);
        }
        drop(state);
        self.queued.notify_one();
        Ok((ack == Ack::One).then_some(waiting))
    }

    /// Queues a request whose pushes go to `inlet`; the number is what credit is given to.
    pub(crate) fn subscribe(
        &self,
        request: &Request,
        inlet: &Arc<Inlet>,
    ) -> Result<(u32, Waiting), RequestError> {
        let (sender, waiting) = oneshot::channel();
        let mut state = self.state.lock();
        if state.is_over {
            return Err(RequestError::Lost);
        }
        let id = state.id();
        request.encode(id).iter().for_each(|piece| state.put(piece));
        state.waiting.insert(id, sender);
        state.inlets.insert(id, Arc::clone(inlet));
        drop(state);
        self.queued.notify_one();
        Ok((id, waiting))
    }

    /// Lets a subscription send more.
    pub(crate) fn credit(&self, subscription: u32, bytes: u64) {
        self.tell(&Request::Credit(request::Credit { subscription, bytes }));
    }

    /// Ends a subscription; what still comes for it is thrown away.
    pub(crate) fn unsubscribe(&self, subscription: u32) {
        self.state.lock().inlets.remove(&subscription);
        self.tell(&Request::Unsubscribe(request::Unsubscribe { subscription }));
    }

    /// Queues a request that has no answer.
    fn tell(&self, request: &Request) {
        let mut state = self.state.lock();
        if !state.is_over {
            let id = state.id();
            request.encode(id).iter().for_each(|piece| state.put(piece));
            drop(state);
            self.queued.notify_one();
        }
    }

    /// The handle of a stream, asked for once.
    pub(crate) async fn stream(
        &self,
        name: &StreamName,
        limit: Duration,
    ) -> Result<reply::Opened, RequestError> {
        if let Some(opened) = self.streams.lock().get(name) {
            return Ok(opened.clone());
        }
        match self.ask(&request::Open { name: name.clone() }.into(), limit).await? {
            Reply::Opened(opened) => {
                self.streams.lock().insert(name.clone(), opened.clone());
                Ok(opened)
            }
            _ => Err(RequestError::Unexpected("Opened")),
        }
    }

    /// The handle of a cache, asked for once.
    pub(crate) async fn cache(&self, name: &CacheName, limit: Duration) -> Result<u32, RequestError> {
        if let Some(handle) = self.caches.lock().get(name) {
            return Ok(*handle);
        }
        match self.ask(&request::CacheOpen { name: name.clone() }.into(), limit).await? {
            Reply::CacheOpened(opened) => {
                self.caches.lock().insert(name.clone(), opened.handle);
                Ok(opened.handle)
            }
            _ => Err(RequestError::Unexpected("CacheOpened")),
        }
    }

    /// Forgets a handle that the broker does not know any more.
    pub(crate) fn forget_stream(&self, name: &StreamName) {
        self.streams.lock().remove(name);
    }

    /// Forgets a handle that the broker does not know any more.
    pub(crate) fn forget_cache(&self, name: &CacheName) {
        self.caches.lock().remove(name);
    }

    /// Ends the line; everybody who waits is told.
    pub(crate) fn end(&self) {
        let (waiting, inlets) = {
            let mut state = self.state.lock();
            state.is_over = true;
            (std::mem::take(&mut state.waiting), std::mem::take(&mut state.inlets))
        };
        drop(waiting);
        inlets.values().for_each(|inlet| inlet.push(Push::Lost));
        self.go_on(Course::Ending);
        self.queued.notify_one();
        self.written.notify_waiters();
    }

    fn go_on(&self, to: Course) {
        self.course.send_if_modified(|course| std::mem::replace(course, to.max(*course)) < to);
    }

    /// Waits until what was queued before the end has been written and read, or will not be.
    pub(crate) async fn ended(&self) {
        let mut course = self.course.subscribe();
        let _ = course.wait_for(|course| *course == Course::Ended).await;
    }

    /// Waits until everything that was queued so far has been written.
    pub(crate) async fn drained(&self) {
        let queued = self.state.lock().queued_bytes;
        loop {
            let mut written = std::pin::pin!(self.written.notified());
            written.as_mut().enable();
            {
                let state = self.state.lock();
                if state.is_over || state.written_bytes >= queued {
                    return;
                }
            }
            written.await;
        }
    }

    async fn read(self: Arc<Self>, mut reader: Reader, mut decoder: Decoder) {
        let idle = Duration::from_millis(self.welcome.idle_timeout_ms.max(3000).into());
        let mut pulse = tokio::time::interval(idle / 3);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut heard = Instant::now();
        loop {
            if self.deliver(&mut decoder).is_err() {
                break;
            }
            let wanted = decoder.missing().clamp(READ_BYTES / 2, READ_BYTES);
            decoder.buffer().reserve(wanted);
            tokio::select! {
                biased;
                read = reader.read(decoder.buffer()) => match read {
                    Ok(bytes) if bytes > 0 => heard = Instant::now(),
                    Ok(_) | Err(_) => break,
                },
                _ = pulse.tick() => {
                    if heard.elapsed() > idle || !self.ping() {
                        break;
                    }
                }
            }
        }
        self.end();
        self.go_on(Course::Silent);
    }

    /// Asks for a sign of life, and lets the broker hear one; answers whether the line is still there.
    fn ping(&self) -> bool {
        let is_over = self.state.lock().is_over;
        if !is_over {
            // The answer is for nobody: that something comes is what counts.
            drop(self.send(&request::Ping { nonce: 0 }.into()));
        }
        !is_over
    }

    /// Gives every whole frame to whom it belongs.
    fn deliver(&self, decoder: &mut Decoder) -> Result<(), trifid_stream_model::frame::FrameError> {
        while let Some(frame) = decoder.next_frame()? {
            let reply = Reply::decode(&frame)?;
            self.dispatch(&frame, reply);
        }
        Ok(())
    }

    fn dispatch(&self, frame: &Frame, reply: Reply) {
        match reply {
            Reply::Goaway(_) => self.state.lock().is_leaving = true,
            Reply::Batch(batch) => self.push(frame.id, Push::Batch(batch)),
            Reply::Lost(lost) => self.push(frame.id, Push::Skipped(lost)),
            Reply::CacheEvents(events) => self.push(frame.id, Push::Changes(events.changes)),
            Reply::Ended(ended) => {
                let inlet = self.state.lock().inlets.remove(&frame.id);
                if let Some(inlet) = inlet {
                    inlet.push(Push::Ended(ended));
                }
            }
            Reply::Error(refusal) => self.answer(frame.id, Err(refusal)),
            reply => self.answer(frame.id, Ok(reply)),
        }
    }

    fn push(&self, id: u32, push: Push) {
        let inlet = self.state.lock().inlets.get(&id).cloned();
        if let Some(inlet) = inlet {
            inlet.push(push);
        }
    }

    fn answer(&self, id: u32, answer: Answer) {
        let (sender, inlet) = {
            let mut state = self.state.lock();
            // A subscription that was refused gets no pushes.
            let inlet = if answer.is_err() { state.inlets.remove(&id) } else { None };
            (state.waiting.remove(&id), inlet)
        };
        drop(inlet);
        match (sender, answer) {
            // Whoever asked may have given up.
            (Some(sender), answer) => drop(sender.send(answer)),
            (None, Err(refusal)) => {
                tracing::warn!(code = ?refusal.code, message = %refusal.message, "the broker tells of a refusal");
            }
            (None, Ok(_)) => {}
        }
    }

    async fn write(self: Arc<Self>, mut writer: Writer) {
        let mut course = self.course.subscribe();
        let abandoned = async {
            let _ = course.wait_for(|course| *course >= Course::Ending).await;
            tokio::time::sleep(END_GRACE).await;
        };
        tokio::select! {
            () = async {
                self.write_queued(&mut writer).await;
                self.end();
                let _ = self.course.subscribe().wait_for(|course| *course >= Course::Silent).await;
            } => {}
            // Nobody reads what is left any more.
            () = abandoned => {}
        }
        self.end();
        self.go_on(Course::Ended);
    }

    /// Writes what is queued until the line ends, and says so to the other side.
    async fn write_queued(&self, writer: &mut Writer) {
        loop {
            let (chunks, is_over) = {
                let mut state = self.state.lock();
                state.close();
                (std::mem::take(&mut state.closed), state.is_over)
            };
            match chunks.is_empty() {
                true if is_over => return writer.finish().await,
                true => {
                    self.queued.notified().await;
                    continue;
                }
                false => {}
            }
            let bytes = chunks.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            if write_all(writer, chunks).await.is_err() {
                return;
            }
            self.state.lock().written_bytes += bytes;
            self.written.notify_waiters();
        }
    }
}

/// Preface and Hello, and what comes back.
async fn greet(
    reader: &mut Reader,
    writer: &mut Writer,
    options: &ClientOptions,
) -> Result<(Decoder, reply::Welcome), ConnectError> {
    let mut out = BytesMut::new();
    out.extend_from_slice(&Preface::new(Capabilities::ALL).encode());
    let hello = request::Hello {
        token: options.token.clone().map(request::Token),
        tenant: options.tenant.clone(),
        client: options.name.clone(),
        required: Capabilities::STREAMS,
        max_frame_bytes: u32::try_from(FRAME_BYTES_MAX).unwrap_or(u32::MAX),
    };
    Request::from(hello).encode(HELLO_ID).append_to(&mut out);
    write_all(writer, vec![out.freeze()]).await.map_err(|_| ConnectError::Ended)?;
    let mut decoder = Decoder::with_max(FRAME_BYTES_DEFAULT);
    let mut has_preface = false;
    loop {
        if !has_preface {
            has_preface = decoder.preface().map_err(ConnectError::Protocol)?.is_some();
        }
        if has_preface && let Some(frame) = decoder.next_frame().map_err(ConnectError::Protocol)? {
            return match Reply::decode(&frame).map_err(ConnectError::Protocol)? {
                Reply::Welcome(welcome) => {
                    decoder.set_max(usize::try_from(welcome.max_frame_bytes).unwrap_or(FRAME_BYTES_MAX));
                    Ok((decoder, welcome))
                }
                Reply::Error(refusal) => Err(ConnectError::Refused(refusal)),
                _ => Err(ConnectError::Ended),
            };
        }
        match reader.read(decoder.buffer()).await {
            Ok(bytes) if bytes > 0 => {}
            Ok(_) | Err(_) => return Err(ConnectError::Ended),
        }
    }
}

/// The number of the greeting.
const HELLO_ID: u32 = 1;

impl Reader {
    async fn read(&mut self, into: &mut BytesMut) -> io::Result<usize> {
        match self {
            Self::Tls(half) => half.read_buf(into).await,
            Self::Quic(stream) => stream.read_buf(into).await,
        }
    }
}

impl Writer {
    async fn finish(&mut self) {
        match self {
            Self::Tls(half) => drop(half.shutdown().await),
            Self::Quic(stream) => drop(stream.finish()),
        }
    }
}

async fn write_all(writer: &mut Writer, mut chunks: Vec<Bytes>) -> io::Result<()> {
    match writer {
        Writer::Quic(stream) => Ok(stream.write_all_chunks(&mut chunks).await?),
        Writer::Tls(half) => {
            let mut first = 0;
            while first < chunks.len() {
                let mut slices = [IoSlice::new(&[]); SLICES_MAX];
                let filled =
                    chunks[first..].iter().zip(&mut slices).map(|(chunk, slot)| *slot = IoSlice::new(chunk));
                let filled = filled.count();
                let written = half.write_vectored(&slices[..filled]).await?;
                if written == 0 {
                    return Err(io::ErrorKind::WriteZero.into());
                }
                first = advance(&mut chunks, first, written);
            }
            half.flush().await
        }
    }
}

/// Takes what was written off the front; answers the first chunk that is left.
fn advance(chunks: &mut [Bytes], mut first: usize, mut written: usize) -> usize {
    while written > 0 {
        let Some(chunk) = chunks.get_mut(first) else { return first };
        let step = chunk.len().min(written);
        chunk.advance(step);
        written -= step;
        first += usize::from(chunk.is_empty());
    }
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_taken_off_the_front() {
        let mut chunks =
            vec![Bytes::from_static(b"abc"), Bytes::from_static(b"de"), Bytes::from_static(b"f")];
        assert_eq!(advance(&mut chunks, 0, 2), 0);
        assert_eq!(chunks[0], b"c"[..]);
        assert_eq!(advance(&mut chunks, 0, 2), 1);
        assert_eq!(chunks[1], b"e"[..]);
        assert_eq!(advance(&mut chunks, 1, 2), 3);
    }

    #[test]
    fn numbers_in_use_are_passed_over() {
        let mut state = State { next_id: u32::MAX - 1, ..State::default() };
        state.waiting.insert(u32::MAX, oneshot::channel().0);
        state.waiting.insert(1, oneshot::channel().0);
        assert_eq!(state.id(), 2);
    }
}
