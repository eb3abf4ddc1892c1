package words

import "strings"

// Count counts the words of a text.
func Count(text string) map[string]int {
	counts := make(map[string]int)
	for _, word := range strings.Fields(text) {
		word = strings.ToLower(word)
		counts[word]++
	}
	return counts
}

// Longest finds the longest word of a text.
func Longest(text string) string {
	longest := ""
	for _, word := range strings.Fields(text) {
		if len(word) > len(longest) {
			longest = word
		}
	}

	return longest
}

func Shortest(text string) string {
	shortest := ""
	for _, word := range strings.Fields(text) {
		if shortest == "" || len(word) < len(shortest) {
			shortest = word
		}
	}

	return shortest
}
