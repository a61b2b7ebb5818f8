//! Lets a store keep records in `arc_swap` cells, from which readers borrow without touching a counter.

#![allow(
    unsafe_code,
    reason = "the trait is unsafe to implement; every call goes to the wrapped pointer's own"
)]

use arc_swap::RefCnt;
use triomphe::ThinArc;

use super::Record;

// SAFETY: `Record` is nothing but a `ThinArc`, whose own implementation keeps the contract; each function
// passes through to it and wraps or unwraps the same pointer.
unsafe impl RefCnt for Record {
    type Base = <ThinArc<(), u8> as RefCnt>::Base;

    fn into_ptr(me: Self) -> *mut Self::Base {
        <ThinArc<(), u8> as RefCnt>::into_ptr(me.0)
    }

    fn as_ptr(me: &Self) -> *mut Self::Base {
        <ThinArc<(), u8> as RefCnt>::as_ptr(&me.0)
    }

    unsafe fn from_ptr(pointer: *const Self::Base) -> Self {
        // SAFETY: the caller gives a pointer that `into_ptr` made, as the trait demands.
        Record(unsafe { <ThinArc<(), u8> as RefCnt>::from_ptr(pointer) })
    }
}
