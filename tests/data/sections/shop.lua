-- function no()
local Shop = {}
Shop.__index = Shop

--[[
function commented()
]]
function Shop.new(name)
  local self = setmetatable({}, Shop)
  self.name = name or "end"
  return self
end

function Shop:add(
  item,
  price
)
  for i = 1, 2 do
    if i then
      print(i)
    end
  end
  local text = [[
function text()
end
]]
  return function()
    return text
  end
end

local function helper(x) return x end

Shop.size = function(self)
  return 1
end

table.sort({}, function(a, b)
  return a < b
end)
