//! Chat templates and grammars are programs from outside. One runs (or is compiled) on a thread of its own, where
//! - the stack is large enough for the deepest nesting that its fuel can build (values drop, compare and print
//!   recursively);
//! - memory and time have limits, which the allocator watches: a template needs few instructions to double a string. Time is the
//!   processor's, so that a job is no more likely to be stopped on a busy machine or at a low priority.
//!
//! A job that has passed a limit gets no more memory, and so unwinds: handle_alloc_error may panic, and everything on its way
//! gives back what it holds. The job ends, its thread with it, and nothing of it stays taken. Rust aborts instead
//! unless its error hook says otherwise, which pagoda_alloc_error sets. A job beyond its time that asks for no memory
//! just then cannot be stopped. Its caller goes on without it. As long as such jobs are still at work, they are
//! counted, and hold up others of their sandbox.
//!
//! A system that has no memory or no thread left is not the request's fault. Code that lacks it unwinds in the same way
//! (`caught`), and its error begins with LACK. So the client is not told that the request was wrong.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Address space; only what is touched becomes memory. Measured: fuel for 5 million instructions nests a list 800,000 deep,
/// and printing that takes 280 MB.
const STACK_BYTES: usize = 1 << 30;
/// Allocations between two looks at the clock; a large one looks at once.
const ALLOCATIONS_PER_LOOK: u32 = 1024;
const LARGE_ALLOCATION: usize = 1 << 16;
/// Between two looks at the time of a job that has nearly used its own.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// The reciprocal of a share of a processor: a job that gets less hangs for other reasons.
const SMALLEST_SHARE: u32 = 30;
/// For a job beyond its time to ask for memory, and to unwind.
const TIME_TO_STOP: Duration = Duration::from_millis(200);
/// Jobs beyond their time that are still at work: no further one is started beside so many.
const MAX_OVERDUE: usize = 4;

#[derive(Clone, Copy)]
pub struct Limits {
    pub num_bytes: usize,
    pub time: Duration,
}

impl Limits {
    /// Adds `times` times the memory that a job's input takes.
    pub fn with_input(self, num_bytes: usize, times: usize) -> Limits {
        let num_bytes = self.num_bytes.saturating_add(num_bytes.saturating_mul(times));
        Limits { num_bytes, ..self }
    }
}

/// How errors begin that tell of the system's lack; text/rust_bridge.h knows it.
const LACK: &str = "lack: ";
const NO_MEMORY: &str = "the system has no memory left";

pub enum Failure {
    /// The job's own error, or a panic.
    Failed(String),
    /// A limit was passed.
    Stopped(String),
    /// The system has no memory or no thread left.
    Lacking(String),
}

impl Failure {
    /// Returns the error of a limit that was passed. `in_words`: makes it from the limit's name.
    pub fn message(self, in_words: impl FnOnce(&str) -> String) -> String {
        match self {
            Failure::Failed(message) => message,
            Failure::Stopped(message) => in_words(&message),
            Failure::Lacking(message) => format!("{LACK}{message}"),
        }
    }
}

#[derive(Clone, Copy)]
enum Excess {
    Memory,
    Time,
    System,
}

impl Excess {
    fn as_failure(self, limits: &Limits) -> Failure {
        match self {
            Excess::Memory => Failure::Stopped(format!(
                "it takes more than {} MiB of memory",
                limits.num_bytes >> 20
            )),
            Excess::Time => {
                Failure::Stopped(format!("it takes longer than {} s", limits.time.as_secs_f64()))
            }
            Excess::System => Failure::Lacking(NO_MEMORY.into()),
        }
    }
}

/// Where jobs of one kind run. Thread-safe.
#[derive(Default)]
pub struct Sandbox {
    num_overdue: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running,
    Done,
    /// The caller has gone on without the job.
    Overdue,
}

struct Signal {
    state: Mutex<State>,
    changed: Condvar,
    is_overdue: AtomicBool,
    num_overdue: Arc<AtomicUsize>,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        if std::mem::replace(&mut *self.lock(), State::Done) == State::Overdue {
            self.num_overdue.fetch_sub(1, Ordering::Relaxed);
        }
        self.changed.notify_one();
    }

    /// Waits for the job's end; false: the job is beyond its time and still at work.
    fn wait<T>(&self, thread: &JoinHandle<T>, limit: Duration) -> bool {
        let start = Instant::now();
        let is_running = |state: &mut State| *state == State::Running;
        let mut state = self.lock();
        let mut left = limit;
        loop {
            let waited = self.changed.wait_timeout_while(state, left, is_running);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *state != State::Running {
                return true;
            }
            let used = processor_time_of(thread).unwrap_or_else(|| start.elapsed());
            if used >= limit || start.elapsed() >= limit * SMALLEST_SHARE {
                break;
            }
            left = limit.saturating_sub(used).max(SHORTEST_WAIT);
        }
        self.is_overdue.store(true, Ordering::Relaxed);
        let waited = self.changed.wait_timeout_while(state, TIME_TO_STOP, is_running);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *state != State::Running {
            return true;
        }
        *state = State::Overdue;
        self.num_overdue.fetch_add(1, Ordering::Relaxed);
        false
    }
}

fn read_clock(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Writes to `time` alone.
    let is_read = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    is_read.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Returns the processor time of another thread; None where the system does not tell it.
#[cfg(target_os = "linux")]
fn processor_time_of<T>(thread: &JoinHandle<T>) -> Option<Duration> {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock: libc::clockid_t = 0;
    // The thread has not been joined, so its handle is valid, also when it has ended.
    let is_known = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) } == 0;
    if is_known { read_clock(clock) } else { None }
}

#[cfg(not(target_os = "linux"))]
fn processor_time_of<T>(_: &JoinHandle<T>) -> Option<Duration> {
    None
}

/// The memory and time that a sandboxed thread may still take; it lives on that thread's stack.
struct Budget<'a> {
    num_bytes: Cell<usize>,
    num_allocations: Cell<u32>,
    /// Once a limit is passed, the job gets nothing any more.
    excess: Cell<Option<Excess>>,
    limits: Limits,
    is_overdue: &'a AtomicBool,
}

impl Budget<'_> {
    fn charge(&self, num_bytes: usize) -> bool {
        let total = self.num_bytes.get().saturating_add(num_bytes);
        if self.excess.get().is_none() {
            self.excess.set(self.find_excess(total, num_bytes));
        }
        // An unwinding thread may need some memory for it.
        if self.excess.get().is_some() && !thread::panicking() {
            return false;
        }
        self.num_bytes.set(total);
        true
    }

    fn find_excess(&self, total: usize, num_bytes: usize) -> Option<Excess> {
        if total > self.limits.num_bytes {
            return Some(Excess::Memory);
        }
        let num_allocations = self.num_allocations.get().wrapping_add(1);
        self.num_allocations.set(num_allocations);
        let looks = num_bytes >= LARGE_ALLOCATION || num_allocations % ALLOCATIONS_PER_LOOK == 0;
        let is_late = self.is_overdue.load(Ordering::Relaxed)
            || looks && read_clock(libc::CLOCK_THREAD_CPUTIME_ID) > Some(self.limits.time);
        is_late.then_some(Excess::Time)
    }
}

thread_local! {
    /// Null: the thread is not sandboxed. Points into the frame of `Sandbox::run`'s closure, which outlives the time that it
    /// is set.
    static BUDGET: Cell<*const Budget<'static>> = const { Cell::new(ptr::null()) };
    /// The thread is in `caught`.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// The payload of an unwinding where the system has no memory left.
struct NoMemory;

/// Unwinds the job of an allocation that failed; a return aborts.
fn unwind_job(layout: Layout) {
    let budget = BUDGET.get();
    if !budget.is_null() {
        let excess = &unsafe { &*budget }.excess;
        excess.set(excess.get().or(Some(Excess::System)));
    }
    if !budget.is_null() || IS_CAUGHT.get() {
        resume_unwind(Box::new(NoMemory));
    }
    eprintln!("memory allocation of {} bytes failed", layout.size());
}

/// Returns the call's result; an error where it panics, or where the system has no memory left for it.
pub fn caught<T>(call: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    pagoda_alloc_error::set_hook(unwind_job);
    let was_caught = IS_CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(was_caught);
    result.unwrap_or_else(|panic| {
        if panic.is::<NoMemory>() {
            return Err(format!("{LACK}{NO_MEMORY}"));
        }
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Err(format!("internal error: {}", text.unwrap_or("a panic without a message")))
    })
}

/// Runs a job on a sandboxed thread.
fn run_job<T>(
    limits: Limits,
    signal: &Signal,
    job: impl FnOnce() -> Result<T, String>,
) -> Result<(T, usize), Failure> {
    let budget = Budget {
        num_bytes: Cell::new(0),
        num_allocations: Cell::new(0),
        excess: Cell::new(None),
        limits,
        is_overdue: &signal.is_overdue,
    };
    BUDGET.set(ptr::from_ref(&budget).cast());
    let result = catch_unwind(AssertUnwindSafe(job));
    BUDGET.set(ptr::null());
    // Whatever the job has made of the unwinding.
    if let Some(excess) = budget.excess.get() {
        return Err(excess.as_failure(&limits));
    }
    match result {
        Ok(Ok(value)) => Ok((value, budget.num_bytes.get())),
        Ok(Err(message)) => Err(Failure::Failed(message)),
        Err(_) => Err(Failure::Failed("internal error: it panicked".into())),
    }
}

impl Sandbox {
    /// Jobs that are beyond their time and still at work take all the places that there are for them.
    pub fn is_busy(&self) -> bool {
        self.num_overdue.load(Ordering::Relaxed) >= MAX_OVERDUE
    }

    /// Returns the job's result, and how many bytes that the job has allocated are still in use.
    pub fn run<T: Send + 'static>(
        &self,
        limits: Limits,
        job: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<(T, usize), Failure> {
        let signal = Arc::new(Signal {
            state: Mutex::new(State::Running),
            changed: Condvar::new(),
            is_overdue: AtomicBool::new(false),
            num_overdue: self.num_overdue.clone(),
        });
        let of_job = signal.clone();
        let guarded = move || {
            let result = run_job(limits, &of_job, job);
            of_job.end();
            result
        };
        let spawned =
            thread::Builder::new().name("sandbox".into()).stack_size(STACK_BYTES).spawn(guarded);
        let thread = spawned.map_err(|e| {
            Failure::Lacking(format!(
                "the system starts no thread with {} MB of address space for its stack ({e}): does `ulimit -v` leave as much, and `ulimit -u` one more?",
                STACK_BYTES >> 20
            ))
        })?;
        if !signal.wait(&thread, limits.time) {
            return Err(Excess::Time.as_failure(&limits));
        }
        thread.join().unwrap_or_else(|_| Err(Failure::Failed("internal error: it panicked".into())))
    }
}

/// The system's allocator, which asks the budget where there is one.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[inline]
fn charge(num_bytes: usize) -> bool {
    let budget = BUDGET.get();
    budget.is_null() || charge_budget(unsafe { &*budget }, num_bytes)
}

#[cold]
fn charge_budget(budget: &Budget, num_bytes: usize) -> bool {
    budget.charge(num_bytes)
}

#[inline]
fn credit(num_bytes: usize) {
    let budget = BUDGET.get();
    if !budget.is_null() {
        let budget = unsafe { &*budget };
        // Memory from before the thread may be freed here too.
        budget.num_bytes.set(budget.num_bytes.get().saturating_sub(num_bytes));
    }
}

unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !charge(layout.size()) {
            return ptr::null_mut();
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !charge(layout.size()) {
            return ptr::null_mut();
        }
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if !charge(new_size) {
            return ptr::null_mut();
        }
        credit(layout.size());
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        credit(layout.size());
        unsafe { System.dealloc(block, layout) }
    }
}
