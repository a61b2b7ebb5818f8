//! Jobs that are forgotten with the process: the executable specification of the store.

use std::collections::HashMap;
use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::{Job, JobId, JobStore, ResultSink, StoreError};

type Files = Arc<Mutex<HashMap<(JobId, String), Bytes>>>;

/// Jobs in memory.
#[derive(Default)]
pub struct MemoryJobs {
    records: Mutex<HashMap<JobId, Job>>,
    parts: Files,
    results: Files,
}

impl JobStore for MemoryJobs {
    fn all(&self) -> Result<Vec<Job>, StoreError> {
        Ok(self.records.lock().values().cloned().collect())
    }

    fn put(&self, job: &Job) -> Result<(), StoreError> {
        self.records.lock().insert(job.id.clone(), job.clone());
        Ok(())
    }

    fn remove(&self, id: &JobId) -> Result<(), StoreError> {
        self.records.lock().remove(id);
        self.parts.lock().retain(|(job, _), _| job != id);
        self.results.lock().retain(|(job, _), _| job != id);
        Ok(())
    }

    fn put_part(&self, id: &JobId, label: &str, bytes: &[u8]) -> Result<(), StoreError> {
        self.parts.lock().insert((id.clone(), label.into()), Bytes::copy_from_slice(bytes));
        Ok(())
    }

    fn part(&self, id: &JobId, label: &str) -> Result<Bytes, StoreError> {
        self.parts.lock().get(&(id.clone(), label.into())).cloned().ok_or(StoreError::Missing)
    }

    fn create_result(&self, id: &JobId, name: &str) -> Result<Box<dyn ResultSink>, StoreError> {
        let key = (id.clone(), name.to_owned());
        self.results.lock().remove(&key);
        Ok(Box::new(Sink { bytes: Cursor::new(Vec::new()), key, results: Arc::clone(&self.results) }))
    }

    fn result(&self, id: &JobId, name: &str) -> Result<(u64, Box<dyn Read + Send>), StoreError> {
        let bytes =
            self.results.lock().get(&(id.clone(), name.into())).cloned().ok_or(StoreError::Missing)?;
        Ok((bytes.len() as u64, Box::new(Cursor::new(bytes))))
    }

    fn result_from(
        &self,
        id: &JobId,
        name: &str,
        start: u64,
    ) -> Result<(u64, Box<dyn Read + Send>), StoreError> {
        let bytes =
            self.results.lock().get(&(id.clone(), name.into())).cloned().ok_or(StoreError::Missing)?;
        let length = bytes.len();
        let rest = bytes.slice(usize::try_from(start).map_or(length, |start| start.min(length))..);
        Ok((length as u64, Box::new(Cursor::new(rest))))
    }
}

struct Sink {
    bytes: Cursor<Vec<u8>>,
    key: (JobId, String),
    results: Files,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Sink {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(to)
    }
}

impl ResultSink for Sink {
    fn finish(self: Box<Self>) -> Result<u64, StoreError> {
        let bytes = self.bytes.into_inner();
        let length = bytes.len() as u64;
        self.results.lock().insert(self.key, bytes.into());
        Ok(length)
    }
}
