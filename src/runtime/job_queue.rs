//! A bounded queue of jobs, and the threads that run them.

use crate::error::{Error, Result};
use crossbeam_channel::{Receiver, Sender, bounded};
use std::thread::{Builder, JoinHandle};

/// A queue of jobs and its threads. The threads end when the queue has been dropped and all jobs are done.
pub(crate) struct JobQueue<J> {
    name: &'static str,
    queue: Option<Sender<J>>,
    threads: Vec<JoinHandle<()>>,
}

impl<J: Send + 'static> JobQueue<J> {
    /// Starts threads that call `work` with the receiver of the jobs. `capacity` is the maximum number of jobs that
    /// wait for a thread. If the system refuses some threads, the others do the work.
    pub(crate) fn start(
        name: &'static str,
        threads: usize,
        capacity: usize,
        work: impl Fn(&Receiver<J>) + Clone + Send + 'static,
    ) -> Result<Self> {
        let (queue, jobs) = bounded(capacity.max(1));
        let mut started = Self {
            name,
            queue: Some(queue),
            threads: Vec::new(),
        };
        for number in 0..threads.max(1) {
            let (jobs, work) = (jobs.clone(), work.clone());
            match Builder::new().name(name.into()).spawn(move || work(&jobs)) {
                Ok(thread) => started.threads.push(thread),
                Err(error) if number == 0 => {
                    let cause = format!("cannot start the thread '{name}': {error}");
                    return Err(Error::Usage(cause));
                }
                Err(_) => break,
            }
        }
        Ok(started)
    }

    /// Adds a job. Blocks while the queue is full.
    pub(crate) fn send(&self, job: J) -> Result<()> {
        let queue = self.queue.as_ref().ok_or_else(|| self.stopped_error())?;
        queue.send(job).map_err(|_| self.stopped_error())
    }

    fn stopped_error(&self) -> Error {
        Error::internal(format!("the threads '{}' stopped", self.name))
    }
}

impl<J> Drop for JobQueue<J> {
    fn drop(&mut self) {
        self.queue = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
