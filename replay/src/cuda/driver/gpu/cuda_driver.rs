//! A real device, through cudarc; [`library`](super::library) obtains its parts from the driver.
//!
//! It makes raw calls of the driver's interface, because the replay must decide itself what synchronises, and every
//! call between two launches counts. All handles belong to one [`CudaDriver`], which ends them together. Each call
//! first makes the driver's context current on the calling thread.

#![allow(unsafe_code, reason = "calls of the driver's library")]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cudarc::driver::sys::{self, CUdevice_attribute, CUgraphMem_attribute, CUmemPool_attribute};
use planlab_dsa::{Address, Bytes, DeviceMemory};

use super::binding::Binding;
use super::library::{
    allocation_properties, byte_length, check_call, check_memory, create_event, create_stream, default_pool,
    describe_device, device_attribute, device_count, device_handle, find_functions, load_library,
    load_module, mapping_granularity, memory_location, read_value, retain_context, set_current,
};
use crate::cuda::driver::interface::{
    DeviceInfo, Driver, DriverError, Faults, Graph, Kernel, Mark, PoolMemory, SLOTS, WORD,
};
use crate::cuda::driver::kernels;

/// Bytes of a page if the driver does not report them.
const PAGE: u64 = 2 << 20;

/// A device with a context, a stream, two events and the kernels.
pub(crate) struct CudaDriver {
    info: DeviceInfo,
    device: sys::CUdevice,
    /// Makes the context current on a thread.
    binding: Binding,
    /// The other handles are addresses in the driver's library, kept as numbers so that they may move between threads.
    /// The driver keeps what they name for the context, whichever thread uses them. 0 means not created yet.
    context: usize,
    stream: usize,
    events: [usize; 2],
    module: usize,
    functions: [usize; 4],
    pool: usize,
    slots: u64,
    multiprocessors: u64,
    page: u64,
    graphs: Mutex<Graphs>,
    /// Mapped pieces, by first address.
    pieces: Mutex<BTreeMap<u64, Piece>>,
    is_closed: bool,
}

/// Memory that is mapped and unmapped as a whole.
#[derive(Clone, Copy)]
struct Piece {
    bytes: usize,
    handle: sys::CUmemGenericAllocationHandle,
}

#[derive(Default)]
struct Graphs {
    next: u64,
    /// The launchable form of each graph, by its number.
    ready: BTreeMap<u64, usize>,
}

impl CudaDriver {
    /// Opens the device of a number, from 0.
    pub(crate) fn new(ordinal: u32) -> Result<Self, DriverError> {
        load_library()?;
        let device = device_handle(i32::try_from(ordinal).unwrap_or(i32::MAX))?;
        if device_attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? == 0 {
            return Err(DriverError::from_absence(format!("GPU {ordinal} has no memory pools")));
        }
        let mut driver = Self::with_context(device, ordinal)?;
        // If that fails, dropping gives back what was obtained until then.
        driver.open_handles()?;
        Ok(driver)
    }

    /// A driver with the device's context and nothing else yet.
    fn with_context(device: sys::CUdevice, ordinal: u32) -> Result<Self, DriverError> {
        let key = format!("cuda:{ordinal}");
        let info = DeviceInfo { key, name: String::new(), is_simulated: false, l2_bytes: None };
        Ok(Self {
            info,
            device,
            binding: Binding::new(),
            context: retain_context(device)?,
            stream: 0,
            events: [0; 2],
            module: 0,
            functions: [0; 4],
            pool: 0,
            slots: 0,
            multiprocessors: 0,
            page: PAGE,
            graphs: Mutex::default(),
            pieces: Mutex::default(),
            is_closed: false,
        })
    }

    /// Obtains the rest, and stores each handle at once so that [`end_handles`](Self::end_handles) can give it back.
    fn open_handles(&mut self) -> Result<(), DriverError> {
        self.bind_context()?;
        let (module, compiled) = load_module()?;
        self.module = module;
        self.functions = find_functions(module)?;
        self.info.name = describe_device(self.device, compiled)?;
        let l2_bytes = device_count(self.device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
        self.info.l2_bytes = l2_bytes.ok().filter(|&bytes| bytes > 0);
        self.stream = create_stream()?;
        for place in &mut self.events {
            *place = create_event()?;
        }
        self.pool = default_pool(self.device)?;
        self.multiprocessors =
            device_count(self.device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        // If the driver has no virtual ranges, only contenders that need them fail.
        self.page = mapping_granularity(self.device).unwrap_or(PAGE);
        self.slots = self.malloc(Bytes::new(8 * SLOTS as u64))?.get();
        self.load_kernels()
    }

    /// Runs each kernel once, so that what the driver loads then does not count as a contender's memory.
    fn load_kernels(&self) -> Result<(), DriverError> {
        let (at, words) = (Address::new(self.slots), 8 * SLOTS as u64 / WORD);
        let kernels = [
            Kernel::Fill { at, words, seed: 1 },
            Kernel::Sum { at, words, slot: 0 },
            Kernel::Verify { at, words, seed: 1, slot: 0 },
            Kernel::Spin { nanoseconds: 1 },
        ];
        for kernel in kernels {
            // SAFETY: the counters are `words` words of this driver's memory, and nobody reads them yet.
            unsafe { self.launch_kernel(kernel) }?;
        }
        self.synchronise()
    }

    /// Makes the context current on the calling thread.
    #[inline]
    fn bind_context(&self) -> Result<(), DriverError> {
        self.binding.ensure_current(|| set_current(self.context as sys::CUcontext))
    }

    fn stream(&self) -> sys::CUstream {
        self.stream as sys::CUstream
    }

    fn pool_handle(&self) -> sys::CUmemoryPool {
        self.pool as sys::CUmemoryPool
    }

    fn pool_figure(&self, attribute: CUmemPool_attribute) -> Result<u64, DriverError> {
        self.bind_context()?;
        read_value("cuMemPoolGetAttribute", 0_u64, |value| {
            // SAFETY: the pool is the device's own; these attributes are numbers of 64 bits.
            unsafe { sys::cuMemPoolGetAttribute(self.pool_handle(), attribute, value.cast()) }
        })
    }

    fn set_pool(&self, attribute: CUmemPool_attribute, mut value: u64) -> Result<(), DriverError> {
        self.bind_context()?;
        // SAFETY: as above.
        let code =
            unsafe { sys::cuMemPoolSetAttribute(self.pool_handle(), attribute, (&raw mut value).cast()) };
        check_call("cuMemPoolSetAttribute", code)
    }

    fn graph_figure(&self, attribute: CUgraphMem_attribute) -> Result<u64, DriverError> {
        read_value("cuDeviceGetGraphMemAttribute", 0_u64, |value| {
            // SAFETY: the device exists; these attributes are numbers of 64 bits.
            unsafe { sys::cuDeviceGetGraphMemAttribute(self.device, attribute, value.cast()) }
        })
    }

    fn set_graph_figure(&self, attribute: CUgraphMem_attribute, mut value: u64) -> Result<(), DriverError> {
        // SAFETY: as above.
        let code =
            unsafe { sys::cuDeviceSetGraphMemAttribute(self.device, attribute, (&raw mut value).cast()) };
        check_call("cuDeviceSetGraphMemAttribute", code)
    }

    /// Launches a function of the module.
    ///
    /// # Safety
    ///
    /// The numbers are the function's parameters; pointers among them point to memory of the device.
    unsafe fn launch_function(
        &self,
        function: usize,
        blocks: u32,
        threads: u32,
        numbers: &mut [u64],
    ) -> Result<(), DriverError> {
        self.bind_context()?;
        let mut parameters = [ptr::null_mut::<c_void>(); 4];
        for (parameter, number) in parameters.iter_mut().zip(numbers) {
            *parameter = ptr::from_mut(number).cast();
        }
        // SAFETY: the function belongs to the loaded module. The caller passes exactly its parameters, which are
        // numbers of 64 bits and are read during the call. The launch requests no shared memory.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.functions[function] as sys::CUfunction,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                0,
                self.stream(),
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check_call("cuLaunchKernel", code)
    }

    fn slot_address(&self, slot: u32) -> u64 {
        self.slots + 8 * (u64::from(slot) % SLOTS as u64)
    }

    fn lock_graphs(&self) -> MutexGuard<'_, Graphs> {
        self.graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_pieces(&self) -> MutexGuard<'_, BTreeMap<u64, Piece>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts new memory under a piece of a range; if that fails, the piece has none.
    fn map_piece(&self, at: u64, bytes: usize) -> Result<(), DriverError> {
        let mut handle = 0;
        let properties = allocation_properties(self.device);
        // SAFETY: both pointers point to locals; the piece is given back below, or when it is unmapped.
        let code = unsafe { sys::cuMemCreate(&raw mut handle, bytes, &raw const properties, 0) };
        check_memory("cuMemCreate", Bytes::new(bytes as u64), code)?;
        // SAFETY: the piece is new; the driver refuses addresses that are not reserved or already have memory.
        let code = unsafe { sys::cuMemMap(at, bytes, 0, handle, 0) };
        if let Err(error) = check_memory("cuMemMap", Bytes::new(bytes as u64), code) {
            // SAFETY: the piece is new and mapped nowhere.
            check_call("cuMemRelease", unsafe { sys::cuMemRelease(handle) })?;
            return Err(error);
        }
        self.lock_pieces().insert(at, Piece { bytes, handle });
        Ok(())
    }

    /// Lets kernels read and write mapped memory.
    fn allow_access(&self, at: u64, bytes: usize) -> Result<(), DriverError> {
        let access = sys::CUmemAccessDesc {
            location: memory_location(self.device),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the range was just mapped; the pointer points to one local description.
        let code = unsafe { sys::cuMemSetAccess(at, bytes, &raw const access, 1) };
        check_memory("cuMemSetAccess", Bytes::new(bytes as u64), code)
    }

    /// Unmaps a piece that no running work uses.
    fn unmap_piece(&self, at: u64) -> Result<(), DriverError> {
        let stranger = || DriverError::from_failure("cuMemUnmap", format!("no piece begins at {at}"));
        let piece = self.lock_pieces().remove(&at).ok_or_else(stranger)?;
        // SAFETY: the range is one piece exactly as it was mapped, and no running work uses it.
        let unmapped = check_call("cuMemUnmap", unsafe { sys::cuMemUnmap(at, piece.bytes) });
        // SAFETY: `map_piece` made the handle, which is not used any more; the driver keeps the memory while it is
        // mapped.
        unmapped.and(check_call("cuMemRelease", unsafe { sys::cuMemRelease(piece.handle) }))
    }

    /// Ends all existing handles; nothing may be called afterwards.
    fn end_handles(&mut self) -> Result<(), DriverError> {
        let mut faults = Faults::default();
        faults.note_end(self.bind_context());
        // SAFETY: the handles are this driver's; nobody else uses the driver now, and they are not used afterwards.
        unsafe {
            if self.stream != 0 {
                faults.note_end(check_call("cuStreamSynchronize", sys::cuStreamSynchronize(self.stream())));
            }
            if self.slots != 0 {
                faults.note_end(check_call("cuMemFree", sys::cuMemFree_v2(self.slots)));
            }
            for &ready in self.lock_graphs().ready.values() {
                let ended = sys::cuGraphExecDestroy(ready as sys::CUgraphExec);
                faults.note_end(check_call("cuGraphExecDestroy", ended));
            }
            for event in self.events.into_iter().filter(|&event| event != 0) {
                faults.note_end(check_call("cuEventDestroy", sys::cuEventDestroy_v2(event as sys::CUevent)));
            }
            if self.module != 0 {
                let unloaded = sys::cuModuleUnload(self.module as sys::CUmodule);
                faults.note_end(check_call("cuModuleUnload", unloaded));
            }
            if self.stream != 0 {
                faults.note_end(check_call("cuStreamDestroy", sys::cuStreamDestroy_v2(self.stream())));
            }
            let released = sys::cuDevicePrimaryCtxRelease_v2(self.device);
            faults.note_end(check_call("cuDevicePrimaryCtxRelease", released));
        }
        faults.as_result()
    }
}

impl Driver for CudaDriver {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn device_memory(&self) -> Result<DeviceMemory, DriverError> {
        self.bind_context()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: a context is current; the pointers point to locals.
        check_call("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) })?;
        Ok(DeviceMemory { free: Bytes::new(free as u64), total: Bytes::new(total as u64) })
    }

    fn malloc(&self, size: Bytes) -> Result<Address, DriverError> {
        self.bind_context()?;
        let mut at = 0;
        let bytes = byte_length(size)?;
        // SAFETY: a context is current; the pointer points to a local.
        check_memory("cuMemAlloc", size, unsafe { sys::cuMemAlloc_v2(&raw mut at, bytes) })?;
        Ok(Address::new(at))
    }

    fn free(&self, at: Address) -> Result<(), DriverError> {
        self.bind_context()?;
        // SAFETY: the driver refuses addresses that do not begin an allocation; it waits for running work.
        check_call("cuMemFree", unsafe { sys::cuMemFree_v2(at.get()) })
    }

    fn malloc_async(&self, size: Bytes) -> Result<Address, DriverError> {
        self.bind_context()?;
        let mut at = 0;
        let bytes = byte_length(size)?;
        // SAFETY: the stream is this driver's; the pointer points to a local.
        let code = unsafe { sys::cuMemAllocAsync(&raw mut at, bytes, self.stream()) };
        check_memory("cuMemAllocAsync", size, code)?;
        Ok(Address::new(at))
    }

    fn free_async(&self, at: Address) -> Result<(), DriverError> {
        self.bind_context()?;
        // SAFETY: the driver refuses addresses that do not begin an allocation; the stream is this driver's.
        check_call("cuMemFreeAsync", unsafe { sys::cuMemFreeAsync(at.get(), self.stream()) })
    }

    fn pool_memory(&self) -> Result<PoolMemory, DriverError> {
        Ok(PoolMemory {
            reserved: self.pool_figure(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_peak: self.pool_figure(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?,
            used: self.pool_figure(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            used_peak: self.pool_figure(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH)?,
        })
    }

    fn keep_in_pool(&self, threshold: Bytes) -> Result<(), DriverError> {
        self.set_pool(CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, threshold.get())
    }

    fn reset_pool(&self) -> Result<(), DriverError> {
        self.synchronise()?;
        // SAFETY: the pool is the device's own.
        check_call("cuMemPoolTrimTo", unsafe { sys::cuMemPoolTrimTo(self.pool_handle(), 0) })?;
        self.set_pool(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 0)?;
        self.set_pool(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH, 0)
    }

    fn reserve(&self, size: Bytes) -> Result<Address, DriverError> {
        self.bind_context()?;
        let mut at = 0;
        let bytes = byte_length(size)?;
        // SAFETY: the pointer points to a local; no particular address is requested.
        let code = unsafe { sys::cuMemAddressReserve(&raw mut at, bytes, 0, 0, 0) };
        check_memory("cuMemAddressReserve", size, code)?;
        Ok(Address::new(at))
    }

    fn unreserve(&self, at: Address, size: Bytes) -> Result<(), DriverError> {
        self.bind_context()?;
        let bytes = byte_length(size)?;
        // SAFETY: the driver refuses ranges that are not reserved.
        check_call("cuMemAddressFree", unsafe { sys::cuMemAddressFree(at.get(), bytes) })
    }

    fn map(&self, at: Address, size: Bytes, piece: Bytes) -> Result<(), DriverError> {
        self.bind_context()?;
        let (bytes, count) = (byte_length(size)?, size.get() / piece.get().max(1));
        let (at, piece) = (at.get(), byte_length(piece)?);
        let mut mapped = Vec::new();
        let map = (0..count).map(|number| at + number * piece as u64).try_for_each(|start| {
            self.map_piece(start, piece)?;
            mapped.push(start);
            Ok(())
        });
        let Err(error) = map.and_then(|()| self.allow_access(at, bytes)) else { return Ok(()) };
        let mut faults = Faults::default();
        mapped.iter().rev().for_each(|&start| faults.note_end(self.unmap_piece(start)));
        // A failure to undo outranks a failure to map: it loses memory.
        faults.as_result().and(Err(error))
    }

    fn unmap(&self, pieces: &[Address]) -> Result<(), DriverError> {
        self.synchronise()?;
        let mut faults = Faults::default();
        pieces.iter().for_each(|at| faults.note_end(self.unmap_piece(at.get())));
        faults.as_result()
    }

    fn page_size(&self) -> Bytes {
        Bytes::new(self.page)
    }

    unsafe fn launch_kernel(&self, kernel: Kernel) -> Result<(), DriverError> {
        let grid = |words| kernels::block_count(words, self.multiprocessors);
        // SAFETY: the caller vouches for the words; the counters are this driver's; the numbers have the order of the
        // kernels' parameters.
        unsafe {
            match kernel {
                Kernel::Fill { at, words, seed } => {
                    self.launch_function(0, grid(words), kernels::THREADS, &mut [at.get(), words, seed])
                }
                Kernel::Sum { at, words, slot } => {
                    let slot = self.slot_address(slot);
                    self.launch_function(1, grid(words), kernels::THREADS, &mut [at.get(), words, slot])
                }
                Kernel::Verify { at, words, seed, slot } => {
                    let slot = self.slot_address(slot);
                    self.launch_function(2, grid(words), kernels::THREADS, &mut [at.get(), words, seed, slot])
                }
                Kernel::Spin { nanoseconds } => self.launch_function(3, 1, 1, &mut [nanoseconds]),
            }
        }
    }

    fn clear_slots(&self) -> Result<(), DriverError> {
        self.bind_context()?;
        // SAFETY: the counters are `8 * SLOTS` bytes of this driver's memory.
        check_call("cuMemsetD8Async", unsafe {
            sys::cuMemsetD8Async(self.slots, 0, 8 * SLOTS, self.stream())
        })
    }

    fn read_slots(&self) -> Result<Vec<u64>, DriverError> {
        let mut slots = vec![0_u64; SLOTS];
        self.synchronise()?;
        // SAFETY: the counters are `8 * SLOTS` bytes of this driver's memory, and the vector has as many.
        let code = unsafe { sys::cuMemcpyDtoH_v2(slots.as_mut_ptr().cast(), self.slots, 8 * SLOTS) };
        check_call("cuMemcpyDtoH", code)?;
        Ok(slots)
    }

    fn record_mark(&self, mark: Mark) -> Result<(), DriverError> {
        self.bind_context()?;
        let event = self.events[mark as usize] as sys::CUevent;
        // SAFETY: the event and the stream are this driver's.
        check_call("cuEventRecord", unsafe { sys::cuEventRecord(event, self.stream()) })
    }

    fn between_marks(&self) -> Result<Duration, DriverError> {
        self.bind_context()?;
        let [begin, end] = self.events.map(|event| event as sys::CUevent);
        // SAFETY: the events are this driver's; the pointer points to a local.
        let call = |milliseconds: *mut _| unsafe { sys::cuEventElapsedTime(milliseconds, begin, end) };
        let milliseconds = read_value("cuEventElapsedTime", 0_f32, call)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }

    fn synchronise(&self) -> Result<(), DriverError> {
        self.bind_context()?;
        // SAFETY: the stream is this driver's.
        check_call("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.stream()) })
    }

    fn begin_capture(&self) -> Result<(), DriverError> {
        self.bind_context()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is this driver's.
        check_call("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(self.stream(), mode) })
    }

    fn end_capture(&self) -> Result<Graph, DriverError> {
        self.bind_context()?;
        // SAFETY: the stream is this driver's; the pointer points to a local.
        let call = |graph: *mut _| unsafe { sys::cuStreamEndCapture(self.stream(), graph) };
        let graph = read_value("cuStreamEndCapture", ptr::null_mut(), call)?;
        let mut ready = ptr::null_mut();
        // SAFETY: the graph was just captured; its launchable form does not need it afterwards.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut ready, graph, 0) };
        // SAFETY: as above.
        let dropped = unsafe { sys::cuGraphDestroy(graph) };
        check_memory("cuGraphInstantiate", Bytes::ZERO, made)?;
        check_call("cuGraphDestroy", dropped)?;
        let mut graphs = self.lock_graphs();
        graphs.next += 1;
        let number = graphs.next;
        graphs.ready.insert(number, ready as usize);
        Ok(Graph(number))
    }

    unsafe fn launch_graph(&self, graph: Graph) -> Result<(), DriverError> {
        self.bind_context()?;
        let found = self.lock_graphs().ready.get(&graph.0).copied();
        let ready = found.ok_or_else(|| DriverError::from_failure("cuGraphLaunch", "no such graph"))?;
        // SAFETY: the graph is this driver's and was not dropped; the caller vouches for what it touches.
        let code = unsafe { sys::cuGraphLaunch(ready as sys::CUgraphExec, self.stream()) };
        check_memory("cuGraphLaunch", Bytes::ZERO, code)
    }

    fn drop_graph(&self, graph: Graph) -> Result<(), DriverError> {
        self.synchronise()?;
        let mut graphs = self.lock_graphs();
        if let Some(ready) = graphs.ready.remove(&graph.0) {
            // SAFETY: the graph is this driver's, does not run, and is not used any more.
            check_call("cuGraphExecDestroy", unsafe { sys::cuGraphExecDestroy(ready as sys::CUgraphExec) })?;
        }
        // SAFETY: the device exists.
        check_call("cuDeviceGraphMemTrim", unsafe { sys::cuDeviceGraphMemTrim(self.device) })?;
        self.set_graph_figure(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, 0)?;
        self.set_graph_figure(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, 0)
    }

    fn graph_memory(&self) -> Result<PoolMemory, DriverError> {
        Ok(PoolMemory {
            reserved: self.graph_figure(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT)?,
            reserved_peak: self.graph_figure(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)?,
            used: self.graph_figure(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT)?,
            used_peak: self.graph_figure(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)?,
        })
    }

    fn close(&mut self) -> Result<(), DriverError> {
        if std::mem::replace(&mut self.is_closed, true) { Ok(()) } else { self.end_handles() }
    }
}

impl Drop for CudaDriver {
    fn drop(&mut self) {
        // To see errors, callers use `close`.
        drop(self.close());
    }
}
