//! The smallest program there is: it exits. What starting it costs is the cost of starting.
#![no_std]
#![no_main]

#[cfg(target_arch = "x86_64")]
core::arch::global_asm!(".globl _start", "_start:", "xor edi, edi", "mov eax, 231", "syscall");

#[cfg(target_arch = "aarch64")]
core::arch::global_asm!(".globl _start", "_start:", "mov x0, #0", "mov x8, #94", "svc #0");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
