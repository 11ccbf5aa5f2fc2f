//! Chat templates and grammars are programs from outside. One runs (or is compiled) on a thread of its own, where
//! - the stack is large enough for the deepest nesting that its fuel can build (values drop, compare and print
//!   recursively);
//! - memory and time have limits, which the allocator watches: a template needs few instructions to double a string. Time is the
//!   processor's, so that a job is no more likely to be stopped on a busy machine or at a low priority.
//!
//! Rust can neither unwind from an allocation nor stop a thread, so a thread that passes a limit is left where it is, asleep:
//! its memory, the limit at most, stays taken. The caller goes on at once, and counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
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
/// Of a processor, the reciprocal: a job that gets less hangs for other reasons.
const SMALLEST_SHARE: u32 = 30;

#[derive(Clone, Copy)]
pub struct Limits {
    pub num_bytes: usize,
    pub time: Duration,
}

pub enum Failure {
    /// The job's own error, or a panic.
    Failed(String),
    /// A limit was passed; the thread is left asleep.
    Stopped(String),
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Running,
    Done,
    OutOfMemory,
    OutOfTime,
}

struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_one();
    }

    /// The state after the job, or OutOfTime for one that is still at work: its next allocation puts it to sleep.
    fn wait<T>(&self, thread: &JoinHandle<T>, limit: Duration) -> State {
        let start = Instant::now();
        let is_running = |state: &mut State| *state == State::Running;
        let mut state = self.lock();
        let mut left = limit;
        loop {
            let waited = self.changed.wait_timeout_while(state, left, is_running);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *state != State::Running {
                return *state;
            }
            let used = processor_time_of(thread).unwrap_or_else(|| start.elapsed());
            if used >= limit || start.elapsed() >= limit * SMALLEST_SHARE {
                return State::OutOfTime;
            }
            left = limit.saturating_sub(used).max(SHORTEST_WAIT);
        }
    }
}

fn read_clock(clock: libc::clockid_t) -> Option<Duration> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Writes to `time` alone.
    let is_read = unsafe { libc::clock_gettime(clock, &mut time) } == 0;
    is_read.then(|| Duration::new(time.tv_sec as u64, time.tv_nsec as u32))
}

/// None where the system does not say it of another thread.
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

/// What a sandboxed thread may still take; it lives on that thread's stack.
struct Budget {
    num_bytes: Cell<usize>,
    num_allocations: Cell<u32>,
    limits: Limits,
    signal: Arc<Signal>,
}

thread_local! {
    static BUDGET: Cell<*const Budget> = const { Cell::new(ptr::null()) };
}

/// The job's result, and how many bytes of what the job has taken are still taken.
pub fn run<T: Send + 'static>(
    limits: Limits,
    job: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<(T, usize), Failure> {
    let signal = Arc::new(Signal { state: Mutex::new(State::Running), changed: Condvar::new() });
    let budget = Budget {
        num_bytes: Cell::new(0),
        num_allocations: Cell::new(0),
        limits,
        signal: signal.clone(),
    };
    let guarded = move || {
        BUDGET.set(&budget);
        let result = catch_unwind(AssertUnwindSafe(job));
        BUDGET.set(ptr::null());
        budget.signal.set(State::Done);
        result.map(|result| result.map(|value| (value, budget.num_bytes.get())))
    };
    let spawned =
        thread::Builder::new().name("sandbox".into()).stack_size(STACK_BYTES).spawn(guarded);
    let thread = spawned.map_err(|e| Failure::Failed(format!("cannot start a thread: {e}")))?;
    match signal.wait(&thread, limits.time) {
        State::OutOfMemory => {
            let mib = limits.num_bytes >> 20;
            Err(Failure::Stopped(format!("stopped: it takes more than {mib} MiB of memory")))
        }
        State::OutOfTime => {
            let seconds = limits.time.as_secs();
            Err(Failure::Stopped(format!("stopped: it takes longer than {seconds} s")))
        }
        _ => match thread.join() {
            Ok(Ok(result)) => result.map_err(Failure::Failed),
            _ => Err(Failure::Failed("internal error: it panicked".into())),
        },
    }
}

/// The system's allocator, which asks the budget where there is one.
struct Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

#[inline]
fn charge(num_bytes: usize) {
    let budget = BUDGET.get();
    if !budget.is_null() {
        // Points into the frame of `run`'s closure, which outlives the time that it is set.
        charge_budget(unsafe { &*budget }, num_bytes);
    }
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

#[cold]
fn charge_budget(budget: &Budget, num_bytes: usize) {
    let total = budget.num_bytes.get().saturating_add(num_bytes);
    budget.num_bytes.set(total);
    if total > budget.limits.num_bytes {
        sleep_for_good(budget, State::OutOfMemory);
    }
    let num_allocations = budget.num_allocations.get().wrapping_add(1);
    budget.num_allocations.set(num_allocations);
    let looks = num_bytes >= LARGE_ALLOCATION || num_allocations % ALLOCATIONS_PER_LOOK == 0;
    if looks && read_clock(libc::CLOCK_THREAD_CPUTIME_ID) > Some(budget.limits.time) {
        sleep_for_good(budget, State::OutOfTime);
    }
}

fn sleep_for_good(budget: &Budget, state: State) -> ! {
    BUDGET.set(ptr::null());
    budget.signal.set(state);
    loop {
        thread::sleep(Duration::from_secs(3600));
    }
}

unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        charge(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        charge(new_size);
        credit(layout.size());
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        credit(layout.size());
        unsafe { System.dealloc(block, layout) }
    }
}
