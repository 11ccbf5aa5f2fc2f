//! Runs untrusted programs: chat templates, and compilations of grammars. Each job has a thread of its own, where
//! - the stack is large enough for the deepest nesting that a job can build (values are dropped, compared and printed
//!   recursively);
//! - memory and time have limits, which the allocator checks, because a template doubles a string in few instructions.
//!   Time is CPU time, so that a busy machine or a low priority does not cause more stops.
//!
//! A job that exceeds a limit gets no more memory, and so it unwinds: handle_alloc_error panics, and destructors free
//! all the job's memory. By default Rust aborts instead; pagoda_alloc_error changes that. An overdue job that allocates
//! no memory cannot be stopped. Its caller returns without it. Overdue jobs are counted as long as they run, and too
//! many of them block new jobs of their sandbox.
//!
//! If the system has no memory or thread left, that is not the request's fault. Code that fails for this reason unwinds
//! in the same way (`caught`), and its error begins with LACK. So the client is not told that the request was wrong.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Address space; only touched pages become memory. Printing the deepest list that jobs could nest took 280 MB.
const STACK_BYTES: usize = 1 << 30;
/// Allocations between two checks of the clock; a large allocation is always checked.
const ALLOCATIONS_PER_LOOK: u32 = 1024;
const LARGE_ALLOCATION: usize = 1 << 16;
/// The shortest wait before the time of a job is checked again.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);
/// A job that gets less than 1/30 of a core counts as blocked, and is stopped too.
const SMALLEST_SHARE: u32 = 30;
/// How long an overdue job may take to allocate memory and unwind.
const TIME_TO_STOP: Duration = Duration::from_millis(200);
/// A new job starts only while fewer overdue jobs than this still run.
const MAX_OVERDUE: usize = 4;

#[derive(Clone, Copy)]
pub struct Limits {
    pub num_bytes: usize,
    pub time: Duration,
}

impl Limits {
    /// Adds memory for a job's input: `times` bytes for each of its `num_bytes` bytes.
    pub fn with_input(self, num_bytes: usize, times: usize) -> Limits {
        let num_bytes = self.num_bytes.saturating_add(num_bytes.saturating_mul(times));
        Limits { num_bytes, ..self }
    }
}

/// The prefix of errors that the system's lack of memory or threads causes; text/rust_bridge.h knows it.
const LACK: &str = "lack: ";
const NO_MEMORY: &str = "the system has no memory left";

pub enum Failure {
    /// The job's own error, or a panic.
    Failed(String),
    /// A limit was exceeded.
    Stopped(String),
    /// The system has no memory or no thread left.
    Lacking(String),
}

impl Failure {
    /// Returns the error message. `in_words` adds words to the message of an exceeded limit.
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

/// Runs jobs of one kind, and counts the overdue ones. Thread-safe.
#[derive(Default)]
pub struct Sandbox {
    num_overdue: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running,
    Done,
    /// The caller has returned without waiting any longer.
    Overdue,
}

struct Signal {
    state: Mutex<State>,
    changed: Condvar,
    is_overdue: AtomicBool,
    /// The processor's time that the job took, once it has ended.
    num_nanoseconds: AtomicU64,
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

    /// Waits for the job's end; returns false if the job has exceeded its time and still runs.
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
    // Safety: clock_gettime writes to `time` alone.
    let is_read = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    is_read.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// Returns the CPU time of another thread; None if the system does not tell it.
#[cfg(target_os = "linux")]
fn processor_time_of<T>(thread: &JoinHandle<T>) -> Option<Duration> {
    use std::os::unix::thread::JoinHandleExt;
    let mut clock: libc::clockid_t = 0;
    // The handle is valid even if the thread has ended, because it has not been joined.
    let is_known = unsafe { libc::pthread_getcpuclockid(thread.as_pthread_t(), &mut clock) } == 0;
    if is_known { read_clock(clock) } else { None }
}

#[cfg(not(target_os = "linux"))]
fn processor_time_of<T>(_: &JoinHandle<T>) -> Option<Duration> {
    None
}

/// The memory and time used by a sandboxed thread, and its limits. It is on that thread's stack.
struct Budget<'a> {
    num_bytes: Cell<usize>,
    num_allocations: Cell<u32>,
    /// The first limit exceeded. From then on every allocation fails.
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
        // Unwinding itself may need memory.
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
    /// Null: the thread is not sandboxed. Points into the stack frame of `run_job`, which clears it before it returns.
    static BUDGET: Cell<*const Budget<'static>> = const { Cell::new(ptr::null()) };
    /// The thread is inside `caught`.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// The panic payload if the system has no memory left.
struct NoMemory;

/// Unwinds a job, or code in `caught`, whose allocation failed. For other code it returns, and the process aborts.
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

/// Returns the call's result, or an error if it panics or the system has no memory left.
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
    // An exceeded limit counts even if the job has caught the panic.
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
    /// Returns whether so many overdue jobs still run that no other may start.
    pub fn is_busy(&self) -> bool {
        self.num_overdue.load(Ordering::Relaxed) >= MAX_OVERDUE
    }

    /// Returns the job's result, and the number of bytes that it allocated and has not freed.
    pub fn run<T: Send + 'static>(
        &self,
        limits: Limits,
        job: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<(T, usize), Failure> {
        self.run_timed(limits, job).0
    }

    /// Does the same, and returns how much of the processor's time the job took, even if it failed.
    pub fn run_timed<T: Send + 'static>(
        &self,
        limits: Limits,
        job: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> (Result<(T, usize), Failure>, Duration) {
        let signal = Arc::new(Signal {
            state: Mutex::new(State::Running),
            changed: Condvar::new(),
            is_overdue: AtomicBool::new(false),
            num_nanoseconds: AtomicU64::new(0),
            num_overdue: self.num_overdue.clone(),
        });
        let of_job = signal.clone();
        let guarded = move || {
            let result = run_job(limits, &of_job, job);
            let used = read_clock(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or_default();
            of_job.num_nanoseconds.store(used.as_nanos() as u64, Ordering::Relaxed);
            of_job.end();
            result
        };
        let spawned =
            thread::Builder::new().name("sandbox".into()).stack_size(STACK_BYTES).spawn(guarded);
        let thread = match spawned {
            Ok(thread) => thread,
            Err(e) => {
                let failure = Failure::Lacking(format!(
                    "the system starts no thread with {} MB of address space for its stack ({e}): does `ulimit -v` leave as much, and `ulimit -u` one more?",
                    STACK_BYTES >> 20
                ));
                return (Err(failure), Duration::ZERO);
            }
        };
        if !signal.wait(&thread, limits.time) {
            return (Err(Excess::Time.as_failure(&limits)), limits.time);
        }
        let result = thread
            .join()
            .unwrap_or_else(|_| Err(Failure::Failed("internal error: it panicked".into())));
        (result, Duration::from_nanos(signal.num_nanoseconds.load(Ordering::Relaxed)))
    }
}

/// The system's allocator, limited by the thread's budget if it has one.
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
        // Saturating, because the job may free memory that was allocated before it.
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
