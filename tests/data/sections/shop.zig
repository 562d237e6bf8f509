// fn no() void {
const std = @import("std");

pub fn add(a: i32) i32 {
    if (a > 1) {
        return 1;
    }
    return 2;
}

// The shop.
const Shop = struct {
    size: u8,

    fn one() u8 {
        return 1;
    }
};

pub const Colour = enum { red, green };

test "adds" {
    try std.testing.expect(add(1) == 2);
}
