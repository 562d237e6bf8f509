package shop

import "fmt"

// Shop is one.
type Shop struct {
	name  string
	inner struct {
		a int
	}
}

type (
	Item interface {
		Name() string
	}
	Price int
)

const text = `func no() {
}`

// Add adds.
// It returns '}'.
func (s *Shop) Add(name string, prices ...interface{}) (map[string]interface{}, error) {
	if r := '{'; r > 0 {
		return nil, fmt.Errorf("}")
	}
	return func() (map[string]interface{}, error) {
		return nil, nil
	}()
}

func Map[T, U any](
	items []T,
	f func(T) U,
) []U {
	for range items {
	}
	return nil
}

func any() interface{} {
	return nil
}

func One() int { return 1 }

func main() {
	add := func(a int) int {
		return a
	}
	_ = add
}

var end = 1
