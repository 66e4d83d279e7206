//! Markup as a separate class, so that a plain string is never taken for markup.

use std::ffi::c_void;

use rquickjs::{Ctx, Object, Value, qjs};

use super::raw::{self, Thrown};

/// The class of markup in one engine. Its objects hold the bytes of [`Markup`](crate::Markup) in the
/// engine's heap, so that they count against the limit of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkupClass {
    id: qjs::JSClassID,
}

/// The beginning of a block: the number of bytes that follow it.
type Header = usize;

const HEADER: usize = size_of::<Header>();

impl MarkupClass {
    /// Registers the class. `prototype` becomes the prototype of its objects.
    pub(crate) fn register(ctx: &Ctx<'_>, prototype: &Object<'_>) -> Result<Self, Thrown> {
        let mut id = 0;
        let definition = qjs::JSClassDef {
            class_name: c"Html".as_ptr(),
            finalizer: Some(finalize),
            gc_mark: None,
            call: None,
            exotic: std::ptr::null_mut(),
        };
        // SAFETY: the engine copies the definition; the prototype's reference is given to it.
        unsafe {
            let context = ctx.as_raw().as_ptr();
            let runtime = qjs::JS_GetRuntime(context);
            qjs::JS_NewClassID(runtime, &raw mut id);
            if qjs::JS_NewClass(runtime, id, &raw const definition) < 0 {
                return Err(Thrown);
            }
            qjs::JS_SetClassProto(context, id, raw::into_raw(prototype.as_value().clone()));
        }
        Ok(Self { id })
    }

    /// A new object with this markup.
    pub(crate) fn create<'js>(self, ctx: &Ctx<'js>, markup: &[u8]) -> Result<Value<'js>, Thrown> {
        let context = ctx.as_raw().as_ptr();
        // SAFETY: the block is as large as the header and the bytes, is aligned for any type, and is
        // freed by the finalizer of the object, or at once if there is no object.
        unsafe {
            let block = qjs::js_malloc(context, (HEADER + markup.len()) as _);
            if block.is_null() {
                return Err(Thrown);
            }
            block.cast::<Header>().write(markup.len());
            let bytes = block.cast::<u8>().add(HEADER);
            std::ptr::copy_nonoverlapping(markup.as_ptr(), bytes, markup.len());
            let object = qjs::JS_NewObjectClass(context, self.id);
            if qjs::JS_IsException(object) {
                qjs::js_free(context, block);
                return Err(Thrown);
            }
            qjs::JS_SetOpaque(object, block);
            raw::owned(ctx, object)
        }
    }

    /// The markup of a value, if it has this class.
    pub(crate) fn read<'v>(self, value: &'v Value<'_>) -> Option<&'v [u8]> {
        // SAFETY: objects of the class have a block of `create`, or none. The block lives as long
        // as the object, to which `value` holds a reference.
        unsafe {
            let block = qjs::JS_GetOpaque(value.as_raw(), self.id).cast::<Header>();
            if block.is_null() {
                return None;
            }
            let bytes = block.cast::<u8>().add(HEADER);
            Some(std::slice::from_raw_parts(bytes, block.read()))
        }
    }
}

/// Frees the bytes of an object.
///
/// # Safety
/// The engine calls it once for each object of the class.
unsafe extern "C" fn finalize(runtime: *mut qjs::JSRuntime, object: qjs::JSValue) {
    let mut id = 0;
    // SAFETY: by this function's contract, the object has this class, and its block is not used
    // any more.
    unsafe {
        let block: *mut c_void = qjs::JS_GetAnyOpaque(object, &raw mut id);
        if !block.is_null() {
            qjs::js_free_rt(runtime, block);
        }
    }
}
