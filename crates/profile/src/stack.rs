//! The walk of the call stack of the calling thread.

/// The most frames of a stack. The outermost frames of a deeper one are left out.
pub(crate) const MAX_DEPTH: usize = 256;

/// The addresses of a call stack, the innermost first.
pub(crate) struct CallStack {
    frames: [usize; MAX_DEPTH],
    length: usize,
    /// Whether outermost frames are left out.
    pub(crate) is_cut: bool,
}

impl CallStack {
    /// Walks the stack of this thread by the tables for unwinding, which every program in Rust has.
    /// A walk by frame pointers would be quicker, but code in C and the libraries of the system have
    /// none.
    pub(crate) fn walk() -> Self {
        let mut stack = Self { frames: [0; MAX_DEPTH], length: 0, is_cut: false };
        // SAFETY: the function must not run on two threads at the same time if that shares the state
        // of the symbolizer or of Windows. The unwinder of Linux shares none, and this closure only
        // stores numbers.
        unsafe {
            backtrace::trace_unsynchronized(|frame| {
                if stack.length == MAX_DEPTH {
                    stack.is_cut = true;
                    return false;
                }
                // The outermost frame of a thread has no address.
                let address = frame.ip().addr();
                if address != 0 {
                    stack.frames[stack.length] = address;
                    stack.length += 1;
                }
                true
            });
        }
        stack
    }

    pub(crate) fn frames(&self) -> &[usize] {
        &self.frames[..self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    fn descend(levels: usize) -> CallStack {
        if levels == 0 {
            return CallStack::walk();
        }
        let stack = descend(levels - 1);
        // Used after the call, so that the call is no jump.
        std::hint::black_box(levels);
        stack
    }

    #[test]
    fn leaves_out_the_outermost_frames_of_a_deep_stack() {
        let shallow = descend(0);
        assert!(!shallow.is_cut && shallow.frames().len() > 1);
        let deeper = descend(20);
        assert_eq!(deeper.frames().len(), shallow.frames().len() + 20);
        let deep = descend(MAX_DEPTH);
        assert!(deep.is_cut);
        assert_eq!(deep.frames().len(), MAX_DEPTH);
    }
}
