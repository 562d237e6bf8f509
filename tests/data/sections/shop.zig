// fn no() void {
const std = @import("std");

pub fn add(a: i32) i32 {
    if (a > 1) {
        return 1;
    }
    return 2;
}

module system is fine
the class of things

class Shop {
  func one() {
    return 1;
  }
}

defmodule Inner do
  def go(x) do
    x
  end
end
